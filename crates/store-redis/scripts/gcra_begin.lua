while p <= length do
  if p + 32 > length then return {S, N, 'ARGS'} end
  q, kind, f, k, cs, cn, ls, ln, bs, bn, p = read('<I2BBI2I5I4I5I4I5I4', blob, p)
  if k < 1 or k > keys or kind > 0 or cn >= G or ln >= G or bn >= G then return {S, N, 'ARGS'} end
  if q == 1 and f == 1 then
    -- One enforced charge that costs something: what almost every question is.
    local s, n = A[k], B[k]
