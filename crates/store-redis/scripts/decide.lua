-- What gcra.lua and mixed.lua have in common, in the order in which they include it.
-- Names end in _s and _n for seconds and nanoseconds, in _h and _l (short: h and l) for the halves of a count.

-- @part open
-- Every call: KEYS are the buckets, each once; ARGV[1] holds all numbers, as unsigned little-endian integers:
--   deadline, then for each charge
--   I2 of the first charge of a request: how many it has, + 32768 if it is denied already; of the others: 0
--   B  kind, B flags, I2 number of the key, then what the kind needs
-- Spans and times are I5 seconds and I4 nanoseconds, counts are I4 high and I4 low.
-- Reply: { seconds, nanoseconds, verdicts, the buckets as they were found, and if there were any the number of foreign
-- values }, or { seconds, nanoseconds, word }.
-- Everything is read and decided before the first write, but for foreign values; nothing that is written can fail.
local SECOND = 1000000000
local call, read, show, sub, find = redis.call, struct.unpack, string.format, string.sub, string.find
local blob, keys = ARGV[1] or '', #KEYS
local length = #blob
if length < 9 then return {now_s, now_n, 'ARGS'} end
local deadline_s, deadline_n, pos = read('<I5I4', blob)
if now_s > deadline_s or (now_s == deadline_s and now_n > deadline_n) then return {now_s, now_n, 'EXPIRED'} end
-- New states, seconds and nanoseconds, by the number of their bucket: only what is written is in here. A
-- table that begins with room for what most calls need is not made anew for every second entry.
local state_s, state_n = {false, false, false, false}, {false, false, false, false}
-- Verdicts as digits, packed 24 to a number: 0 denied, 1 passed, 2 no room.
local verdicts, packed, digits = nil, 0, 0
local charges, kind, flags, bucket
-- Values under our keys that are no buckets: deleted as they are found, and taken for unused ones.
local foreign = 0
local cost_s, cost_n, tolerance_s, tolerance_n, bound_s, bound_n
-- What was read and computed for the charges of a request, twenty entries each.
local plan

-- @part flags
      local base, admits, absent, special = i * 20, false, not (held[bucket] or state_s[bucket]), flags ~= 1
      local needs_room, bit64, bit32, bit16, shadow, counts, force = false, false, false, false, false, false, false
      if special then
        if flags >= 128 then needs_room, flags = true, flags - 128 end
        if flags >= 64 then bit64, flags = true, flags - 64 end
        if flags >= 32 then bit32, flags = true, flags - 32 end
        if flags >= 16 then bit16, flags = true, flags - 16 end
        if flags >= 8 then shadow, flags = true, flags - 8 end
        if flags >= 4 then counts, flags = true, flags - 4 end
        if flags >= 2 then force, flags = true, flags - 2 end
      end

-- @part effects
      if needs_room and absent then room = false end
      if not (admits or shadow) then passes = false end
      -- What becomes of it if the request passes, and if it does not: 0 nothing, 1 charge, 2 force, 3 deny.
      local good, bad = 0, 0
      if flags == 1 then
        if force then
          good, bad = 2, 2
        else
          bad = counts and 2 or 3
          good = admits and 1 or bad
        end
      end
      plan[base + 1], plan[base + 2], plan[base + 3], plan[base + 4] = kind, bucket, good, bad
    end
    if not room then
      packed = packed * 4 + 2
    else
      packed = packed * 4 + (passes and 1 or 0)
      for i = 0, charges - 1 do
        local base = i * 20
        local kind, bucket = plan[base + 1], plan[base + 2]
        local effect = plan[base + (passes and 3 or 4)]

-- @part verdict
      end
    end
  end
  digits = digits + 1
  if digits == 24 then
    verdicts = verdicts or {}
    verdicts[#verdicts + 1], packed, digits = packed, 0, 0
  end
end
if not verdicts then
  verdicts = {packed}
elseif digits > 0 then
  verdicts[#verdicts + 1] = packed
end

-- @part foreign
-- What MGET calls absent may be of another type; what is written replaces it.
if keys > 1 then
  local new
  for bucket = 1, keys do
    if state_s[bucket] and not held[bucket] then
      new = new or {'EXISTS'}
      new[#new + 1] = KEYS[bucket]
    end
  end
  if new then foreign = foreign + call(unpack(new)) end
end

-- @part write
for bucket = 1, keys do
  local s, n = state_s[bucket], state_n[bucket]
  if s and kinds[bucket] == 1 then
    local vh, vl = count_h[bucket], count_l[bucket]
    local value
    if vh > 0 then
      value = pack('<I5I4I4I4', s, n, vh, vl)
    else
      value = pack(vl < 16777216 and '<I5I4I3' or '<I5I4I4', s, n, vl)
    end
    local at = due[bucket]
    call('SET', KEYS[bucket], value, 'PXAT', show('%d%03d', (at - at % 1000) / 1000, at % 1000))
  elseif s and kinds[bucket] == 2 then
    local vh, vl, uh, ul = count_h[bucket], count_l[bucket], newer_h[bucket], newer_l[bucket]
    local value = vh == 0 and uh == 0 and pack('<I5I4I4I4', s, n, vl, ul) or pack('<I5I4I4I4I4I4', s, n, vh, vl, uh, ul)
    local at = due[bucket]
    call('SET', KEYS[bucket], value, 'PXAT', show('%d%03d', (at - at % 1000) / 1000, at % 1000))
  elseif s and kinds[bucket] == 5 then
    local vh, vl, uh, ul = count_h[bucket], count_l[bucket], newer_h[bucket], newer_l[bucket]
    local value = pack('<I5I4I4I4I4I4I5I4', s, n, vh, vl, uh, ul, keep_s[bucket], keep_n[bucket])
    local at = due[bucket]
    call('SET', KEYS[bucket], value, 'PXAT', show('%d%03d', (at - at % 1000) / 1000, at % 1000))
  elseif s then
    -- @include gcra.write

-- @part close
  end
end
if foreign > 0 then return {now_s, now_n, verdicts, held, foreign} end
return {now_s, now_n, verdicts, held}
