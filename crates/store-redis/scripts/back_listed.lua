      end
    end
  elseif kind == 3 then
    -- The window, units, stamp.
    if p + 25 > length then return {S, N, 'ARGS'} end
    local ws, wn, ch, cl, ts, tn
    ws, wn, ch, cl, ts, tn, p = read('<I5I4I4I4I5I4', blob, p)
    if wn >= G or tn >= G or (ws == 0 and wn == 0) then return {S, N, 'ARGS'} end
    local is = call('TYPE', KEYS[k]).ok
    if is ~= 'list' and is ~= 'none' then
      call('DEL', KEYS[k])
      foreign = foreign + 1
    elseif is == 'list' then
      local head, last = call('LINDEX', KEYS[k], 0), call('LINDEX', KEYS[k], -1)
      if #head ~= 17 or (#last ~= 13 and #last ~= 17) then
        call('DEL', KEYS[k])
        foreign = foreign + 1
      elseif not again then listed[#listed + 1] = {3, k, ws, wn, ch, cl, ts, tn} end
    end
  elseif kind == 4 then
    -- The time to live, the holder.
    if p + 24 > length then return {S, N, 'ARGS'} end
    local ws, wn, id
    ws, wn, id, p = read('<I5I4c16', blob, p)
    if wn >= G or (ws == 0 and wn == 0) then return {S, N, 'ARGS'} end
    local is = call('TYPE', KEYS[k]).ok
    if is ~= 'zset' and is ~= 'none' then
      call('DEL', KEYS[k])
      foreign = foreign + 1
    elseif is == 'zset' then listed[#listed + 1] = {4, k, ws, wn, id} end
  else
    return {S, N, 'ARGS'}
  end
end
for mark, at in pairs(spent) do call('SET', KEYS[mark], '', 'PXAT', at) end
for i = 1, #listed do
  local kind, k, ws, wn, ch, cl, ts, tn = unpack(listed[i])
  if kind == 3 then
    local log = {ws = ws, wn = wn}
    local chunk, from = call('LRANGE', KEYS[k], 0, 7), 0
