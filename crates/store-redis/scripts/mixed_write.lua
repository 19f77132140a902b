for k = 1, keys do
  local s, n = A[k], B[k]
  if s and kinds[k] == 1 then
    local vh, vl = C[k], D[k]
    local value
    if vh > 0 then
      value = pack('<I5I4I4I4', s, n, vh, vl)
    else
      value = pack(vl < 16777216 and '<I5I4I3' or '<I5I4I4', s, n, vl)
    end
    local at = due[k]
    call('SET', KEYS[k], value, 'PXAT', show('%d%03d', (at - at % 1000) / 1000, at % 1000))
  elseif s and kinds[k] == 2 then
    local vh, vl, uh, ul = C[k], D[k], E[k], F[k]
    local value = vh == 0 and uh == 0 and pack('<I5I4I4I4', s, n, vl, ul) or pack('<I5I4I4I4I4I4', s, n, vh, vl, uh, ul)
    local at = due[k]
    call('SET', KEYS[k], value, 'PXAT', show('%d%03d', (at - at % 1000) / 1000, at % 1000))
  elseif s and kinds[k] == 5 then
    local value = pack('<I5I4I4I4I4I4I5I4', s, n, C[k], D[k], E[k], F[k], keep_s[k], keep_n[k])
    local at = due[k]
    call('SET', KEYS[k], value, 'PXAT', show('%d%03d', (at - at % 1000) / 1000, at % 1000))
  elseif s then
