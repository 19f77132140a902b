-- Sliding logs (kind 3): a list.

-- @part look
      -- A sliding log (SPEC 5.5): a list of its sum and of how far its times are shifted, then the entries, oldest first:
      -- time and cost. Numbers: the window, the limit that decides, the limit that is told, what must fit, cost.
      if pos + 28 > length then return {now_s, now_n, 'ARGS'} end
      local span_s, span_n, most, shown, mh, ml, cost_h, cost_l
      span_s, span_n, most, shown, mh, ml, cost_h, cost_l, pos = read('<I5I4I2I2I4I4I4I4', blob, pos)
      if span_n >= SECOND or (span_s == 0 and span_n == 0) then return {now_s, now_n, 'ARGS'} end
      local chunk, from = redis.pcall('LRANGE', KEYS[bucket], 0, 7), 0
      if chunk.err then
        if not find(chunk.err, 'WRONGTYPE', 1, true) then return chunk end
        call('DEL', KEYS[bucket])
        chunk, foreign = {}, foreign + 1
      end
      local log = {
        span_s = span_s, span_n = span_n, most = most, shown = shown, mh = mh, ml = ml, cost_h = cost_h, cost_l = cost_l,
        up_to = bit16
      }
      plan[base + 5] = log
      -- @include log.glance
      absent = log.many == 0
      held[bucket] = not absent and {}
      do
        local sh, sl = uh + mh, ul + ml
        if sl >= TWO_32 then sh, sl = sh + 1, sl - TWO_32 end
        admits = sh == 0 and sl <= most
        log.admits, log.made = admits and 1 or 0, absent
      end

-- @part glance
      local many, last = #chunk - 1, chunk[#chunk]
      if many == 7 then
        many, last = call('LLEN', KEYS[bucket]) - 1, call('LINDEX', KEYS[bucket], -1)
      end
      if many == 0 or (many > 0 and (#chunk[1] ~= 17 or (#last ~= 13 and #last ~= 17))) then
        call('DEL', KEYS[bucket])
        many, chunk, foreign = -1, {}, foreign + 1
      end
      local uh, ul, fs, fn = 0, 0, 0, 0
      log.key, log.live, log.gone, log.shifted = KEYS[bucket], 0, 0, false
      log.at_s, log.at_n = now_s, now_n
      if many < 0 then
        log.many = 0
      else
        uh, ul, fs, fn = read('<I4I4I5I4', chunk[1])
        log.many = many
        local s, n = read('<I5I4', last)
        s, n = s - fs, n - fn
        if n < 0 then s, n = s - 1, n + SECOND end
        if s < 0 then s, n = 0, 0 end
        -- A step back by a window or more shifts the whole log, so that its newest entry is now.
        local ahead_s, ahead_n = s - now_s, n - now_n
        if ahead_n < 0 then ahead_s, ahead_n = ahead_s - 1, ahead_n + SECOND end
        if ahead_s > span_s or (ahead_s == span_s and ahead_n >= span_n) then
          fs, fn, s, n, log.shifted = fs + ahead_s, fn + ahead_n, now_s, now_n, true
          if fn >= SECOND then fs, fn = fs + 1, fn - SECOND end
        end
        if s > now_s or (s == now_s and n > now_n) then log.at_s, log.at_n = s, n end
        log.newest_s, log.newest_n = s, n
        -- An entry is gone if its time is at most this one, as times are kept.
        local gs, gn = log.at_s - span_s, log.at_n - span_n
        if gn < 0 then gs, gn = gs - 1, gn + SECOND end
        if gs >= 0 then
          gs, gn = gs + fs, gn + fn
          if gn >= SECOND then gs, gn = gs + 1, gn - SECOND end
          local i = 1
          while i <= many do
            if i - from >= #chunk then
              chunk, from = call('LRANGE', KEYS[bucket], i, i + 63), i
            end
            local entry = chunk[i - from + 1]
            local s, n, h, l
            if #entry == 13 then h, s, n, l = 0, read('<I5I4I4', entry) else s, n, h, l = read('<I5I4I4I4', entry) end
            if s > gs or (s == gs and n > gn) then break end
            uh, ul = uh - h, ul - l
            if ul < 0 then uh, ul = uh - 1, ul + TWO_32 end
            i = i + 1
          end
          log.gone = i - 1
        end
        log.live = many - log.gone
      end
      log.uh, log.ul, log.fs, log.fn, log.chunk, log.from, log.last = uh, ul, fs, fn, chunk, from, last

-- @part settle
        local log = plan[base + 5]
        local cost_h, cost_l, uh, ul = log.cost_h, log.cost_l, log.uh, log.ul
        if effect == 0 or effect == 3 then
          cost_h, cost_l = 0, 0
        elseif effect == 1 and log.up_to then
          local left = (uh == 0 and ul < log.most) and log.most - ul or 0
          if cost_h > 0 or cost_l > left then cost_h, cost_l = 0, left end
        end
        -- No more than keeps the sum exact.
        local sh, sl = uh + cost_h, ul + cost_l
        if sl >= TWO_32 then sh, sl = sh + 1, sl - TWO_32 end
        if sh >= TWO_32 then
          sh, sl = TWO_32 - 1, TWO_32 - 1
          cost_h, cost_l = sh - uh, sl - ul
        end
        local pushes = cost_h > 0 or cost_l > 0
        local joins = pushes and log.live > 0
          and (log.live >= math.max(log.most, 1) or (log.newest_s == log.at_s and log.newest_n == log.at_n))
        local lh, ll = cost_h, cost_l
        if joins then
          if #log.last == 13 then
            ll = ll + read('<I4', log.last, 10)
          else
            lh, ll = lh + read('<I4', log.last, 10), ll + read('<I4', log.last, 14)
          end
          if ll >= TWO_32 then lh, ll = lh + 1, ll - TWO_32 end
        end
        -- Whose departure, with all older ones, brings the use down to what leaves room for the cost, and for one more.
        local frees, next = nil, math.min(log.shown, sh > 0 and log.shown or sl) - 1
        if log.mh == 0 and log.ml <= log.shown and (sh > 0 or sl > log.shown - log.ml) then
          frees = log.shown - log.ml
        end
        local frees_s, frees_n, next_s, next_n = false, false, false, false
        local rh, rl, i, chunk, from = sh, sl, log.gone + 1, log.chunk, log.from
        local many = joins and log.many - 1 or log.many
        while frees or next >= 0 do
          local s, n, h, l
          if i <= many then
            if i - from >= #chunk then
              chunk, from = call('LRANGE', log.key, i, i + 63), i
            end
            local entry = chunk[i - from + 1]
            if #entry == 13 then h, s, n, l = 0, read('<I5I4I4', entry) else s, n, h, l = read('<I5I4I4I4', entry) end
            s, n = s - log.fs, n - log.fn
            if n < 0 then s, n = s - 1, n + SECOND end
            if s < 0 then s, n = 0, 0 end
          elseif i == many + 1 and pushes then
            s, n, h, l = log.at_s, log.at_n, lh, ll
          else
            break
          end
          rh, rl = rh - h, rl - l
          if rl < 0 then rh, rl = rh - 1, rl + TWO_32 end
          if frees and rh == 0 and rl <= frees then frees, frees_s, frees_n = nil, s, n end
          if next >= 0 and rh == 0 and rl <= next then next, next_s, next_n = -1, s, n end
          i = i + 1
        end
        if pushes then log.newest_s, log.newest_n = log.at_s, log.at_n end
        local is_left = pushes or log.live > 0
        if effect > 0 and (is_left or log.gone > 0) then
          log.sh, log.sl, log.lh, log.ll, log.pushes, log.joins, log.is_left = sh, sl, lh, ll, pushes, joins, is_left
          log.same = not (pushes or log.gone > 0 or log.shifted)
          logs = logs or {}
          logs[#logs + 1] = log
        end
        held[bucket] = {
          log.admits, log.made and pushes and 1 or 0, cost_h, cost_l, sh, sl, log.at_s, log.at_n,
          frees_s, frees_n, next_s, next_n, is_left and log.newest_s, is_left and log.newest_n,
        }

-- @part write
for i = 1, logs and #logs or 0 do
  local log = logs[i]
  local key, entry = log.key, nil
  if not log.same then
    if log.live == 0 then
      if log.many > 0 then call('DEL', key) end
      log.fs, log.fn = 0, 0
    end
    if log.pushes then
      local s, n = log.at_s + log.fs, log.at_n + log.fn
      if n >= SECOND then s, n = s + 1, n - SECOND end
      entry = log.lh == 0 and pack('<I5I4I4', s, n, log.ll) or pack('<I5I4I4I4', s, n, log.lh, log.ll)
    end
    local head = pack('<I4I4I5I4', log.sh, log.sl, log.fs, log.fn)
    if log.live == 0 then
      if entry then call('RPUSH', key, head, entry) end
    else
      if log.gone > 0 then call('LTRIM', key, log.gone, -1) end
      call('LSET', key, 0, head)
      if log.joins then
        call('LSET', key, -1, entry)
      elseif entry then
        call('RPUSH', key, entry)
      end
    end
  end
  if log.is_left then
    local s, n = log.newest_s + log.span_s, log.newest_n + log.span_n
    local at = s * 1000 + (n + 999999 - (n + 999999) % 1000000) / 1000000 + 1 + later * 1000
    -- Where nothing is written, only an expiry that was lost is set again.
    if log.same then call('PEXPIREAT', key, at, 'NX') else call('PEXPIREAT', key, at) end
  end
end
