local held
if keys == 1 then
  local value = redis.pcall('GET', KEYS[1])
  if value and value.err then
    if not string.find(value.err, 'WRONGTYPE', 1, true) then return value end
    call('DEL', KEYS[1])
    value, foreign = false, 1
  end
  held = {value}
elseif keys > 1 then
  held = call('MGET', unpack(KEYS))
else
  held = {}
end
