  if kind == 0 then
    -- B of a queue, what it charged in nanoseconds, the interval, the stamp, the bound of a queue.
    if p + 36 > length then return {S, N, 'ARGS'} end
    local queue, cs, cn, is, xn, ts, tn, bs, bn
    queue, cs, cn, is, xn, ts, tn, bs, bn, p = read('<BI5I4I5I4I5I4I5I4', blob, p)
    if cn >= G or xn >= G or tn >= G or bn >= G then return {S, N, 'ARGS'} end
    local s, n = A[k], B[k]
