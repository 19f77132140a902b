local pack = struct.pack
local H = 4294967296
-- Windows need more than A and B; kinds says how a state is written, due when it expires.
local C, D, E, F, kinds, due = {}, {}, {}, {}, {}, {}
local keep_s, keep_n = {}, {}
-- Logs and slots to be written.
local logs, slots_due
local held = {}
if keys > 0 then held = call('MGET', unpack(KEYS)) end
plan = {
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
}
while p <= length do
  if p + 5 > length then return {S, N, 'ARGS'} end
  q, kind, f, k, p = read('<I2BBI2', blob, p)
  local refused = q >= 32768
  if refused then q = q - 32768 end
  if q < 1 then return {S, N, 'ARGS'} end
  do
    local passes, room = not refused, true
    for i = 0, q - 1 do
      if i > 0 then
        if p + 5 > length then return {S, N, 'ARGS'} end
        local next
        next, kind, f, k, p = read('<I2BBI2', blob, p)
        if next > 0 then return {S, N, 'ARGS'} end
      end
      if k < 1 or k > keys then return {S, N, 'ARGS'} end
