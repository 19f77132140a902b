-- Fixed windows (kind 1): the end of a window and its count, a string.

-- @part read
      -- The length of the windows, the end of the one that the caller takes for ours, limit, what must fit, cost.
      if pos + 41 > length then return {now_s, now_n, 'ARGS'} end
      local span_s, span_n, end_s, end_n, lh, ll, mh, ml, cost_h, cost_l
      span_s, span_n, end_s, end_n, lh, ll, mh, ml, cost_h, cost_l, pos = read('<I5I4I5I4I4I4I4I4I4I4', blob, pos)
      if span_n >= SECOND or end_n >= SECOND or (span_s == 0 and span_n == 0) then return {now_s, now_n, 'ARGS'} end

-- @part parse
      -- A fixed window (SPEC 5.4): its end and its count. Twelve bytes, where they are enough, take 32 of the server's
      -- memory; the thirteenth would take 16 more.
      local es, en, vh, vl = state_s[bucket], state_n[bucket], count_h[bucket], count_l[bucket]
      if not es then
        local value = held[bucket]
        local size = value and #value
        if size == 12 then
          vh, es, en, vl = 0, read('<I5I4I3', value)
        elseif size == 13 then
          vh, es, en, vl = 0, read('<I5I4I4', value)
        elseif size == 17 then
          es, en, vh, vl = read('<I5I4I4I4', value)
        end
        if not es or es > 18446744073 or en >= SECOND then
          es, en, vh, vl = 0, 0, 0, 0
          if value then
            call('DEL', KEYS[bucket])
            held[bucket], foreign = false, foreign + 1
          end
        end
      end

-- @part turn
      -- Turned if its window is over or nothing is in it; moved to now, count and all, after a far step back.
      local over = es < now_s or (es == now_s and en <= now_n)
      local moved = false
      do
        local far_s, far_n = now_s + 2 * span_s, now_n + 2 * span_n
        if far_n >= SECOND then far_s, far_n = far_s + 1, far_n - SECOND end
        if far_n >= SECOND then far_s, far_n = far_s + 1, far_n - SECOND end
        local far = es > far_s or (es == far_s and en > far_n)
        if over or far or (vh == 0 and vl == 0) then
          -- @include arithmetic.window_of_now
          if not far or over then vh, vl = 0, 0 end
          es, en, moved = end_s, end_n, true
        end
      end

-- @part look
      do
        local sh, sl = vh + mh, vl + ml
        if sl >= TWO_32 then sh, sl = sh + 1, sl - TWO_32 end
        admits = sh < lh or (sh == lh and sl <= ll)
      end
      plan[base + 5], plan[base + 6], plan[base + 7], plan[base + 8], plan[base + 9] = es, en, vh, vl, moved
      plan[base + 10], plan[base + 11], plan[base + 12], plan[base + 13], plan[base + 14] =
        cost_h, cost_l, bit16, lh, ll

-- @part settle
        local es, en, vh, vl, moved = plan[base + 5], plan[base + 6], plan[base + 7], plan[base + 8], plan[base + 9]
        local cost_h, cost_l = plan[base + 10], plan[base + 11]
        if effect == 0 or effect == 3 then
          cost_h, cost_l = 0, 0
        elseif effect == 1 and plan[base + 12] then
          local rh, rl = plan[base + 13] - vh, plan[base + 14] - vl
          if rl < 0 then rh, rl = rh - 1, rl + TWO_32 end
          if rh < 0 then rh, rl = 0, 0 end
          if rh < cost_h or (rh == cost_h and rl < cost_l) then cost_h, cost_l = rh, rl end
        end
        vh, vl = vh + cost_h, vl + cost_l
        if vl >= TWO_32 then vh, vl = vh + 1, vl - TWO_32 end
        if vh >= TWO_32 then vh, vl = TWO_32 - 1, TWO_32 - 1 end
        if effect > 0 and (vh > 0 or vl > 0) then
          if moved or cost_h > 0 or cost_l > 0 then
            state_s[bucket], state_n[bucket], count_h[bucket], count_l[bucket], kinds[bucket] = es, en, vh, vl, 1
          end
          due[bucket] = es * 1000 + (en + 999999 - (en + 999999) % 1000000) / 1000000 + 1 + later * 1000
        end
