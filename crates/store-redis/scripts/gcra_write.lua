for k = 1, keys do
  local s, n = A[k], B[k]
  if s then
