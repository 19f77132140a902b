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
    -- @include gcra.parse
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
      -- @include gcra.look
      -- @include decide.effects
        -- @include gcra.settle
  -- @include decide.verdict
-- @include decide.foreign
for bucket = 1, keys do
  local s, n = state_s[bucket], state_n[bucket]
  if s then
    -- @include gcra.write
  elseif held[bucket] then
    -- @include gcra.repair
-- @include decide.close

-- @parts, which mixed.lua includes too. The state is one arrival time (kind 0), a string of decimal nanoseconds.

-- @part parse
    -- An arrival time is kept as decimal nanoseconds; none is one in the past.
    if not s then
      local value = held[bucket]
      if not value then
        s, n = 0, 0
      else
        if #value > 9 then
          s, n = tonumber(sub(value, 1, -10)), tonumber(sub(value, -9))
        else
          s, n = 0, tonumber(value)
        end
        if not (s and n) or find(value, '%D') or s > 18446744073 or (s == 18446744073 and n > 709551615) then
          call('DEL', KEYS[bucket])
          s, n, held[bucket], foreign = 0, 0, false, foreign + 1
        end
      end
    end

-- @part look
      -- A token bucket (SPEC 5.1) or a queue (5.3): cost, tolerance, bound; and if bit32 what must fit and the interval
      -- of an ask for as much as fits. bit16: not clamped; bit64: a queue.
      local ms, mn, is, xn = cost_s, cost_n, 0, 0
      if bit32 then
        if pos + 17 > length then return {now_s, now_n, 'ARGS'} end
        ms, mn, is, xn, pos = read('<I5I4I5I4', blob, pos)
        if mn >= SECOND or xn >= SECOND then return {now_s, now_n, 'ARGS'} end
      end
      local s, n = state_s[bucket], state_n[bucket]
      -- @include gcra.parse
      local ahead, part, clamped = 0, 0, false
      if s > now_s or (s == now_s and n > now_n) then
        ahead, part = s - now_s, n - now_n
        if part < 0 then ahead, part = ahead - 1, part + SECOND end
        if not bit16 and (ahead > bound_s or (ahead == bound_s and part > bound_n)) then
          ahead, part, clamped = bound_s, bound_n, true
        end
      end
      local es, en = ahead + ms, part + mn
      if en >= SECOND then es, en = es + 1, en - SECOND end
      admits = es < tolerance_s or (es == tolerance_s and en <= tolerance_n)
      plan[base + 5], plan[base + 6], plan[base + 7], plan[base + 8], plan[base + 9] = ahead, part, clamped, es, en
      plan[base + 10] = special
      if special then
        plan[base + 11], plan[base + 12], plan[base + 13], plan[base + 14], plan[base + 15] =
          cost_s, cost_n, tolerance_s, tolerance_n, bound_s
        plan[base + 16], plan[base + 17], plan[base + 18], plan[base + 19] = bound_n, is, xn, bit64
      end

-- @part settle
        local s, n, clamped, es, en = plan[base + 5], plan[base + 6], plan[base + 7], plan[base + 8], plan[base + 9]
        if effect ~= 1 or plan[base + 10] then
          es, en = s, n
        end
        if effect > 0 and plan[base + 10] then
          local cost_s, cost_n, bound_s, bound_n = plan[base + 11], plan[base + 12], plan[base + 15], plan[base + 16]
          local ms, mn = plan[base + 17], plan[base + 18]
          if effect == 1 and (ms > 0 or mn > 0) then
            -- As many whole intervals as fit, at most the cost.
            local xs, xn = plan[base + 13] - s, plan[base + 14] - n
            if plan[base + 19] then xs, xn = xs + ms, xn + mn end
            if xn < 0 then xs, xn = xs - 1, xn + SECOND end
            if xn >= SECOND then xs, xn = xs + 1, xn - SECOND end
            local rs, rn = xs, xn
          -- @include arithmetic.remainder
            xs, xn = xs - rs, xn - rn
            if xn < 0 then xs, xn = xs - 1, xn + SECOND end
            if xs < cost_s or (xs == cost_s and xn < cost_n) then cost_s, cost_n = xs, xn end
          end
          if effect < 3 then
            es, en = s + cost_s, n + cost_n
            if en >= SECOND then es, en = es + 1, en - SECOND end
          end
          if effect == 2 and (es > bound_s or (es == bound_s and en > bound_n)) then
            es, en = bound_s, bound_n
            if s > bound_s or (s == bound_s and n > bound_n) then es, en = s, n end
          end
        end
        if effect > 0 and (clamped or es ~= s or en ~= n) and (es > 0 or en > 0) then
          s, n = now_s + es, now_n + en
          if n >= SECOND then s, n = s + 1, n - SECOND end
          if s > 18446744073 or (s == 18446744073 and n > 709551615) then s, n = 18446744073, 709551615 end
          state_s[bucket], state_n[bucket] = s, n
        end

-- @part write
    -- Gone one millisecond after the arrival time: an absent key and a time in the past mean the same.
    local at, ms = s + later, (n + 1999999 - (n + 999999) % 1000000) / 1000000
    if ms >= 1000 then at, ms = at + 1, ms - 1000 end
    call('SET', KEYS[bucket], s > 0 and show('%d%09d', s, n) or show('%d', n), 'PXAT', show('%d%03d', at, ms))

-- @part repair
    -- Nothing is written, but nothing stays for ever: a bucket that lost its expiry gets it back.
    local value = held[bucket]
    local s, n = 0, tonumber(sub(value, -9))
    if #value > 9 then s = tonumber(sub(value, 1, -10)) end
    local at, ms = s + later, (n + 1999999 - (n + 999999) % 1000000) / 1000000
    if ms >= 1000 then at, ms = at + 1, ms - 1000 end
    call('PEXPIREAT', KEYS[bucket], show('%d%03d', at, ms), 'NX')
