for k = 1, keys do
  local s, n = A[k], B[k]
  if s and kinds[k] == 1 then
    local vh, vl = C[k], D[k]
    local value = vh == 0 and pack('<I5I4I4', s, n, vl) or pack('<I5I4I4I4', s, n, vh, vl)
    redis.call('SET', KEYS[k], value, 'PXAT', due[k])
  elseif s and kinds[k] == 2 then
    local vh, vl, uh, ul = C[k], D[k], E[k], F[k]
    local value = vh == 0 and uh == 0 and pack('<I5I4I4I4', s, n, vl, ul) or pack('<I5I4I4I4I4I4', s, n, vh, vl, uh, ul)
    redis.call('SET', KEYS[k], value, 'PXAT', due[k])
  elseif s then
