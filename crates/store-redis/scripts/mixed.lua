#!lua
-- Decides limits of every kind.
-- @include clock
-- @include arithmetic.fits
-- @include decide.open
local pack = struct.pack
local TWO_32 = 4294967296
-- Windows need more than state_s and state_n; kinds says how a state is written, due when it expires.
local count_h, count_l, newer_h, newer_l, kinds, due = {}, {}, {}, {}, {}, {}
-- How long a quota is kept after its period; newer_h and newer_l hold what was carried into it.
local keep_s, keep_n = {}, {}
-- Logs and slots to be written.
local logs, slots_due
local held = {}
if keys > 0 then held = call('MGET', unpack(KEYS)) end
plan = {
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
}
while pos <= length do
  if pos + 5 > length then return {now_s, now_n, 'ARGS'} end
  charges, kind, flags, bucket, pos = read('<I2BBI2', blob, pos)
  local denied = charges >= 32768
  if denied then charges = charges - 32768 end
  if charges < 1 then return {now_s, now_n, 'ARGS'} end
  do
    local passes, room = not denied, true
    for i = 0, charges - 1 do
      if i > 0 then
        if pos + 5 > length then return {now_s, now_n, 'ARGS'} end
        local next
        next, kind, flags, bucket, pos = read('<I2BBI2', blob, pos)
        if next > 0 then return {now_s, now_n, 'ARGS'} end
      end
      if bucket < 1 or bucket > keys then return {now_s, now_n, 'ARGS'} end
      -- @include decide.flags
      if kind == 0 then
      if pos + 26 > length then return {now_s, now_n, 'ARGS'} end
      cost_s, cost_n, tolerance_s, tolerance_n, bound_s, bound_n, pos = read('<I5I4I5I4I5I4', blob, pos)
      if cost_n >= SECOND or tolerance_n >= SECOND or bound_n >= SECOND then return {now_s, now_n, 'ARGS'} end
      -- @include gcra.look
      elseif kind == 1 then
      -- @include window.read
      -- @include window.parse
      -- @include window.turn
      -- @include window.look
      elseif kind == 2 then
      -- @include window.read
      -- @include counter.parse
      -- @include counter.turn
      -- @include counter.look
      elseif kind == 3 then
      -- @include log.look
      elseif kind == 4 then
      -- @include slots.look
      elseif kind == 5 then
      -- @include quota.read
      -- @include quota.parse
      -- @include quota.turn
      -- @include quota.look
      else return {now_s, now_n, 'ARGS'} end
      -- @include decide.effects
        if kind == 0 then
        -- @include gcra.settle
        elseif kind == 1 then
        -- @include window.settle
        elseif kind == 2 then
        -- @include counter.settle
          -- @include counter.due
        end
        elseif kind == 3 then
        -- @include log.settle
        elseif kind == 5 then
        -- @include quota.settle
        else
        -- @include slots.settle
        end
  -- @include decide.verdict
if keys == 1 and state_s[1] and not held[1] then foreign = foreign + call('EXISTS', KEYS[1]) end
-- @include decide.foreign
-- @include log.write
-- @include slots.write
-- @include decide.write
  elseif due[bucket] then
    call('PEXPIREAT', KEYS[bucket], show('%d%03d', (due[bucket] - due[bucket] % 1000) / 1000, due[bucket] % 1000), 'NX')
  elseif type(held[bucket]) == 'string' and not find(held[bucket], '%D') then
    -- @include gcra.repair
-- @include decide.close
