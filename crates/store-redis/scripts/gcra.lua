#!lua
-- Decides token buckets and queues only: the shortest path. Parts of other files are pasted in: src/store/script/lua.rs.
-- @include clock
-- @include decide.open
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
while pos <= length do
  if pos + 32 > length then return {now_s, now_n, 'ARGS'} end
  charges, kind, flags, bucket, cost_s, cost_n, tolerance_s, tolerance_n, bound_s, bound_n, pos =
    read('<I2BBI2I5I4I5I4I5I4', blob, pos)
  if bucket < 1 or bucket > keys or kind > 0 or cost_n >= SECOND or tolerance_n >= SECOND or bound_n >= SECOND then
    return {now_s, now_n, 'ARGS'}
  end
  if charges == 1 and flags == 1 then
    -- One enforced charge that costs something: what almost every request is.
    local s, n = state_s[bucket], state_n[bucket]
    -- @include arrival.parse
    local es, en, clamped = cost_s, cost_n, false
    if s > now_s or (s == now_s and n > now_n) then
      s, n = s - now_s, n - now_n
      if n < 0 then s, n = s - 1, n + SECOND end
      if s > bound_s or (s == bound_s and n > bound_n) then s, n, clamped = bound_s, bound_n, true end
      es, en = s + cost_s, n + cost_n
      if en >= SECOND then es, en = es + 1, en - SECOND end
    end
    if es < tolerance_s or (es == tolerance_s and en <= tolerance_n) then
      packed = packed * 4 + 1
      s, n, clamped = es, en, true
    else
      packed = packed * 4
    end
    if clamped and (s > 0 or n > 0) then
      s, n = now_s + s, now_n + n
      if n >= SECOND then s, n = s + 1, n - SECOND end
      if s > 18446744073 or (s == 18446744073 and n > 709551615) then s, n = 18446744073, 709551615 end
      state_s[bucket], state_n[bucket] = s, n
    end
  else
    -- Several charges, or something special about one.
    local denied = charges >= 32768
    if denied then charges = charges - 32768 end
    if charges < 1 then return {now_s, now_n, 'ARGS'} end
    plan = plan or {
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    }
    local passes, room = not denied, true
    for i = 0, charges - 1 do
      if i > 0 then
        if pos + 32 > length then return {now_s, now_n, 'ARGS'} end
        local next
        next, kind, flags, bucket, cost_s, cost_n, tolerance_s, tolerance_n, bound_s, bound_n, pos =
          read('<I2BBI2I5I4I5I4I5I4', blob, pos)
        if next > 0 or bucket < 1 or bucket > keys or kind > 0
          or cost_n >= SECOND or tolerance_n >= SECOND or bound_n >= SECOND then
          return {now_s, now_n, 'ARGS'}
        end
      end
      -- @include decide.flags
      -- @include arrival.look
      -- @include decide.effects
        -- @include arrival.settle
  -- @include decide.verdict
-- @include decide.foreign
for bucket = 1, keys do
  local s, n = state_s[bucket], state_n[bucket]
  if s then
    -- @include arrival.write
  elseif held[bucket] then
    -- @include arrival.repair
-- @include decide.close
