-- Slots of a concurrency limit (kind 4): a sorted set.

-- @part look
      -- Slots (SPEC 5.7): a sorted set of holders by expiry in microseconds. Numbers: time to live, slots, what is asked
      -- (0 reads, 1 reads for nothing, 2 holds, 3 renews), the holder.
      if pos + 33 > length then return {now_s, now_n, 'ARGS'} end
      local span_s, span_n, lh, ll, code, id
      span_s, span_n, lh, ll, code, id, pos = read('<I5I4I4I4Bc16', blob, pos)
      if span_n >= SECOND or (span_s == 0 and span_n == 0) or code > 3 then return {now_s, now_n, 'ARGS'} end
      -- @include slots.glance
      local after, count, holds = show('(%.0f', now), 0, false
      if newest and newest > now then
        count = call('ZCOUNT', KEYS[bucket], after, '+inf')
      else
        newest = false
      end
      if code > 1 and count > 0 then
        local score = call('ZSCORE', KEYS[bucket], id)
        holds = score and tonumber(score) > now
      end
      local slots = lh * TWO_32 + ll
      if code == 3 then
        admits = holds
      elseif code == 1 then
        admits = count <= slots
      else
        admits = (code == 2 and holds) or count < slots
      end
      absent = not last[2]
      held[bucket] = not absent and {}
      plan[base + 5], plan[base + 6], plan[base + 7], plan[base + 8], plan[base + 9] = code, id, now, bound, newest
      plan[base + 10], plan[base + 11], plan[base + 12], plan[base + 13], plan[base + 14] =
        after, count, holds, slots, admits
      plan[base + 15] = absent

-- @part glance
      -- Beyond 2^53 microseconds, in the year 2255, a score would not be exact.
      local now = now_s * 1000000 + (now_n - now_n % 1000) / 1000
      local bound = math.min(now + span_s * 1000000 + (span_n - span_n % 1000) / 1000, 9007199254740992)
      local last = redis.pcall('ZRANGE', KEYS[bucket], -1, -1, 'WITHSCORES')
      if last.err then
        if not find(last.err, 'WRONGTYPE', 1, true) then return last end
        call('DEL', KEYS[bucket])
        last, foreign = {}, foreign + 1
      end
      local newest = last[2] and tonumber(last[2])

-- @part settle
        local code, id, now, bound, newest =
          plan[base + 5], plan[base + 6], plan[base + 7], plan[base + 8], plan[base + 9]
        local after, count, holds, slots, admits =
          plan[base + 10], plan[base + 11], plan[base + 12], plan[base + 13], plan[base + 14]
        local absent, taken = plan[base + 15], effect == 1 and code == 2 and not holds
        local frees = false
        -- Who leaves last before the ask passes: those beyond the slots, and one more unless it only reads. Looked up
        -- before anything is written: a denial does not change who is there.
        if not admits and count > 0 then
          local leaving = count + ((code == 0 or code == 2) and 1 or 0) - slots - 1
          if leaving < 0 then leaving = 0 end
          local who =
            call('ZRANGEBYSCORE', KEYS[bucket], after, '+inf', 'WITHSCORES', 'LIMIT', show('%.0f', leaving), 1)
          frees = who[2] and math.min(tonumber(who[2]), bound) or false
        end
        if code > 1 and effect > 0 then
          local sets = effect == 1 and (holds or taken)
          slots_due = slots_due or {}
          slots_due[#slots_due + 1] = {KEYS[bucket], now, bound, newest, sets and id, absent}
          if newest and newest > bound then newest = bound end
          if sets then newest = bound end
        end
        held[bucket] = {
          admits and 1 or 0, taken and absent and 1 or 0, 0, taken and 1 or 0, taken and count + 1 or count, frees, newest,
        }

-- @part write
for i = 1, slots_due and #slots_due or 0 do
  local key, now, bound, newest, id, absent = unpack(slots_due[i])
  if not absent then call('ZREMRANGEBYSCORE', key, '-inf', show('%.0f', now)) end
  if newest and newest > bound then
    -- Only a clock that stepped back, or a shorter time to live than before, finds a holder here.
    local far = call('ZRANGEBYSCORE', key, show('(%.0f', bound), '+inf')
    for i = 1, #far do call('ZADD', key, show('%.0f', bound), far[i]) end
    newest = bound
  end
  if id then
    call('ZADD', key, show('%.0f', bound), id)
    newest = bound
  end
  if newest then
    call('PEXPIREAT', key, (newest + 999 - (newest + 999) % 1000) / 1000 + 1 + later * 1000)
  end
end
