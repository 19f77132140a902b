#!lua
-- Takes receipts back.
-- @include clock
-- KEYS are buckets and marks of spent receipts, each once; ARGV[1] holds all numbers, as in the other scripts:
--   deadline, then for each receipt
--   B kind, I2 number of the bucket's key, I2 number of the mark's key or 0, until when its charge owes anything, then
--   what the kind needs
-- Reply: { seconds, nanoseconds, how many gave something back, and if there were any the number of foreign values }, or
-- { seconds, nanoseconds, word }.
local SECOND, TWO_32 = 1000000000, 4294967296
local call, read, pack, show, sub, find = redis.call, struct.unpack, struct.pack, string.format, string.sub, string.find
local blob, keys = ARGV[1] or '', #KEYS
local length = #blob
if length < 9 then return {now_s, now_n, 'ARGS'} end
local deadline_s, deadline_n, pos = read('<I5I4', blob)
if now_s > deadline_s or (now_s == deadline_s and now_n > deadline_n) then return {now_s, now_n, 'EXPIRED'} end
local state_s, state_n, count_h, count_l, newer_h, newer_l, kinds, due = {}, {}, {}, {}, {}, {}, {}, {}
local keep_s, keep_n = {}, {}
local held = {}
if keys > 0 then held = call('MGET', unpack(KEYS)) end
local given, spent, listed, foreign = 0, {}, {}, 0
while pos <= length do
  if pos + 13 > length then return {now_s, now_n, 'ARGS'} end
  local kind, bucket, mark, until_s, until_n
  kind, bucket, mark, until_s, until_n, pos = read('<BI2I2I5I4', blob, pos)
  if bucket < 1 or bucket > keys or mark > keys or until_n >= SECOND then return {now_s, now_n, 'ARGS'} end
  local again = mark > 0 and (held[mark] or spent[mark])
  if mark > 0 and not again and (until_s > now_s or (until_s == now_s and until_n > now_n)) then
    spent[mark] = until_s * 1000 + (until_n + 999999 - (until_n + 999999) % 1000000) / 1000000 + 1 + later * 1000
  end
  local there = not again and (held[bucket] or state_s[bucket])
  if kind == 0 then
    -- B of a queue, what it charged in nanoseconds, the interval, the stamp, the bound of a queue.
    if pos + 36 > length then return {now_s, now_n, 'ARGS'} end
    local queue, cost_s, cost_n, is, xn, ts, tn, bound_s, bound_n
    queue, cost_s, cost_n, is, xn, ts, tn, bound_s, bound_n, pos = read('<BI5I4I5I4I5I4I5I4', blob, pos)
    if cost_n >= SECOND or xn >= SECOND or tn >= SECOND or bound_n >= SECOND then return {now_s, now_n, 'ARGS'} end
    local s, n = state_s[bucket], state_n[bucket]
    -- @include gcra.parse
    if there and (queue == 0 or (s == ts and n == tn)) then
      local ahead, part = s - now_s, n - now_n
      if part < 0 then ahead, part = ahead - 1, part + SECOND end
      if ahead < 0 then ahead, part = 0, 0 end
      if queue == 1 and (ahead > bound_s or (ahead == bound_s and part > bound_n)) then
        ahead, part = bound_s, bound_n
      end
      if cost_s > ahead or (cost_s == ahead and cost_n > part) then cost_s, cost_n = ahead, part end
      if queue == 0 then
        -- No more than what time has not given back by itself.
        local owed, rest = ts - now_s, tn - now_n
        if rest < 0 then owed, rest = owed - 1, rest + SECOND end
        if owed < 0 then owed, rest = 0, 0 end
        if cost_s > owed or (cost_s == owed and cost_n > rest) then cost_s, cost_n = owed, rest end
      end
      if cost_s > is or (cost_s == is and cost_n >= xn) then given = given + 1 end
      if queue == 1 or ahead > 0 or part > 0 then
        s, n = now_s + ahead - cost_s, now_n + part - cost_n
        if n < 0 then s, n = s - 1, n + SECOND end
        if n >= SECOND then s, n = s + 1, n - SECOND end
        state_s[bucket], state_n[bucket], kinds[bucket] = s, n, 0
      end
    end
  elseif kind == 1 or kind == 2 then
    -- The length of the windows, the end of one, units, stamp.
    if pos + 34 > length then return {now_s, now_n, 'ARGS'} end
    local span_s, span_n, end_s, end_n, cost_h, cost_l, ts, tn
    span_s, span_n, end_s, end_n, cost_h, cost_l, ts, tn, pos = read('<I5I4I5I4I4I4I5I4', blob, pos)
    if span_n >= SECOND or end_n >= SECOND or tn >= SECOND or (span_s == 0 and span_n == 0) then
      return {now_s, now_n, 'ARGS'}
    end
    if not there then
    elseif kind == 1 then
      -- @include window.parse
      -- @include window.turn
      if es == ts and en == tn and (vh > 0 or vl > 0) then
        if cost_h > vh or (cost_h == vh and cost_l > vl) then cost_h, cost_l = vh, vl end
        vh, vl = vh - cost_h, vl - cost_l
        if vl < 0 then vh, vl = vh - 1, vl + TWO_32 end
        if cost_h > 0 or cost_l > 0 then given = given + 1 end
        state_s[bucket], state_n[bucket], count_h[bucket], count_l[bucket], kinds[bucket] = es, en, vh, vl, 1
        due[bucket] = es * 1000 + (en + 999999 - (en + 999999) % 1000000) / 1000000 + 1 + later * 1000
      end
    else
      -- @include counter.parse
      -- @include counter.turn
      ts, tn = ts - es, tn - en
      if tn < 0 then ts, tn = ts - 1, tn + SECOND end
      local newer = ts == 0 and tn == 0
      ts, tn = ts + span_s, tn + span_n
      if tn >= SECOND then ts, tn = ts + 1, tn - SECOND end
      if newer or (ts == 0 and tn == 0) then
        local h, l = vh, vl
        if newer then h, l = uh, ul end
        if cost_h > h or (cost_h == h and cost_l > l) then cost_h, cost_l = h, l end
        h, l = h - cost_h, l - cost_l
        if l < 0 then h, l = h - 1, l + TWO_32 end
        if newer then uh, ul = h, l else vh, vl = h, l end
        if cost_h > 0 or cost_l > 0 then given = given + 1 end
        state_s[bucket], state_n[bucket], count_h[bucket], count_l[bucket], newer_h[bucket], newer_l[bucket], kinds[bucket] =
          es, en, vh, vl, uh, ul, 2
        -- @include counter.due
      end
    end
  elseif kind == 3 then
    -- The window, units, stamp.
    if pos + 25 > length then return {now_s, now_n, 'ARGS'} end
    local span_s, span_n, cost_h, cost_l, ts, tn
    span_s, span_n, cost_h, cost_l, ts, tn, pos = read('<I5I4I4I4I5I4', blob, pos)
    if span_n >= SECOND or tn >= SECOND or (span_s == 0 and span_n == 0) then return {now_s, now_n, 'ARGS'} end
    local is = call('TYPE', KEYS[bucket]).ok
    if is ~= 'list' and is ~= 'none' then
      call('DEL', KEYS[bucket])
      foreign = foreign + 1
    elseif is == 'list' then
      local head, last = call('LINDEX', KEYS[bucket], 0), call('LINDEX', KEYS[bucket], -1)
      if #head ~= 17 or (#last ~= 13 and #last ~= 17) then
        call('DEL', KEYS[bucket])
        foreign = foreign + 1
      elseif not again then listed[#listed + 1] = {3, bucket, span_s, span_n, cost_h, cost_l, ts, tn} end
    end
  elseif kind == 4 then
    -- The time to live, the holder.
    if pos + 24 > length then return {now_s, now_n, 'ARGS'} end
    local span_s, span_n, id
    span_s, span_n, id, pos = read('<I5I4c16', blob, pos)
    if span_n >= SECOND or (span_s == 0 and span_n == 0) then return {now_s, now_n, 'ARGS'} end
    local is = call('TYPE', KEYS[bucket]).ok
    if is ~= 'zset' and is ~= 'none' then
      call('DEL', KEYS[bucket])
      foreign = foreign + 1
    elseif is == 'zset' then listed[#listed + 1] = {4, bucket, span_s, span_n, id} end
  elseif kind == 5 then
    -- Units, stamp.
    if pos + 16 > length then return {now_s, now_n, 'ARGS'} end
    local cost_h, cost_l, ts, tn
    cost_h, cost_l, ts, tn, pos = read('<I4I4I5I4', blob, pos)
    if tn >= SECOND then return {now_s, now_n, 'ARGS'} end
    if there then
      -- @include quota.parse
      if runs and es == ts and en == tn then
        if cost_h > vh or (cost_h == vh and cost_l > vl) then cost_h, cost_l = vh, vl end
        vh, vl = vh - cost_h, vl - cost_l
        if vl < 0 then vh, vl = vh - 1, vl + TWO_32 end
        if cost_h > 0 or cost_l > 0 then given = given + 1 end
        -- @include quota.keep
        -- @include quota.due
      end
    end
  else
    return {now_s, now_n, 'ARGS'}
  end
end
for mark, at in pairs(spent) do call('SET', KEYS[mark], '', 'PXAT', at) end
for i = 1, #listed do
  local kind, bucket, span_s, span_n, cost_h, cost_l, ts, tn = unpack(listed[i])
  if kind == 3 then
    local log = {span_s = span_s, span_n = span_n}
    local chunk, from = call('LRANGE', KEYS[bucket], 0, 7), 0
    -- @include log.glance
    local key, place, at = KEYS[bucket], nil, nil
    local ks, kn = ts + fs, tn + fn
    if kn >= SECOND then ks, kn = ks + 1, kn - SECOND end
    -- The newest entry that is not younger than the stamp. It must be of that instant; a shift below zero leaves several
    -- entries at zero.
    local low, high, same = log.gone + 1, many, false
    while low <= high do
      local middle = (low + high - (low + high) % 2) / 2
      local entry = call('LINDEX', key, middle)
      local s, n = read('<I5I4', entry)
      if s < ks or (s == ks and n <= kn) then
        place, at, same, low = middle - log.gone, entry, s == ks and n == kn, middle + 1
      else
        high = middle - 1
      end
    end
    if not same and (ts > 0 or tn > 0) then place = nil end
    if log.live == 0 then
      if many > 0 then call('DEL', key) end
    elseif place or log.gone > 0 or log.shifted then
      if log.gone > 0 then call('LTRIM', key, log.gone, -1) end
      if place then
        local s, n, h, l
        if #at == 13 then h, s, n, l = 0, read('<I5I4I4', at) else s, n, h, l = read('<I5I4I4I4', at) end
        if cost_h > h or (cost_h == h and cost_l > l) then cost_h, cost_l = h, l end
        if cost_h > 0 or cost_l > 0 then given = given + 1 end
        h, l, uh, ul = h - cost_h, l - cost_l, uh - cost_h, ul - cost_l
        if l < 0 then h, l = h - 1, l + TWO_32 end
        if ul < 0 then uh, ul = uh - 1, ul + TWO_32 end
        if h == 0 and l == 0 then
          -- Nothing else of a log is empty.
          call('LSET', key, place, '')
          call('LREM', key, 1, '')
          log.live = log.live - 1
        else
          call('LSET', key, place, h == 0 and pack('<I5I4I4', s, n, l) or pack('<I5I4I4I4', s, n, h, l))
        end
      end
      if log.live == 0 then
        call('DEL', key)
      else
        call('LSET', key, 0, pack('<I4I4I5I4', uh, ul, fs, fn))
        local s, n = read('<I5I4', call('LINDEX', key, -1))
        s, n = s - fs + span_s, n - fn + span_n
        if n < 0 then s, n = s - 1, n + SECOND end
        call('PEXPIREAT', key, s * 1000 + (n + 999999 - (n + 999999) % 1000000) / 1000000 + 1 + later * 1000)
      end
    end
  else
    -- @include slots.glance
    -- Holders that are gone or too far ahead are tidied first, so that only a slot that is held is released.
    local key = KEYS[bucket]
    call('ZREMRANGEBYSCORE', key, '-inf', show('%.0f', now))
    if newest and newest > bound then
      local far = call('ZRANGEBYSCORE', key, show('(%.0f', bound), '+inf')
      for i = 1, #far do call('ZADD', key, show('%.0f', bound), far[i]) end
    end
    given = given + call('ZREM', key, cost_h)
    last = call('ZRANGE', key, -1, -1, 'WITHSCORES')
    if last[2] then
      newest = tonumber(last[2])
      call('PEXPIREAT', key, (newest + 999 - (newest + 999) % 1000) / 1000 + 1 + later * 1000)
    end
  end
end
-- @include decide.write
  end
end
if foreign > 0 then return {now_s, now_n, given, foreign} end
return {now_s, now_n, given}
