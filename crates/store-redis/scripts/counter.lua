-- Sliding counters (kind 2): the end of the newer of two windows and both counts, a string.

-- @part parse
      -- A sliding counter (SPEC 5.6): the end of the newer window, and the counts of the older and of the newer one.
      local es, en, vh, vl, uh, ul =
        state_s[bucket], state_n[bucket], count_h[bucket], count_l[bucket], newer_h[bucket], newer_l[bucket]
      if not es then
        local value = held[bucket]
        local size = value and #value
        if size == 17 then
          vh, uh, es, en, vl, ul = 0, 0, read('<I5I4I4I4', value)
        elseif size == 25 then
          es, en, vh, vl, uh, ul = read('<I5I4I4I4I4I4', value)
        end
        if not es or es > 18446744073 or en >= SECOND then
          es, en, vh, vl, uh, ul = 0, 0, 0, 0, 0, 0
          if value then
            call('DEL', KEYS[bucket])
            held[bucket], foreign = false, foreign + 1
          end
        end
      end

-- @part turn
      -- The newer window becomes the older one when it is over; two windows later nothing is left.
      local moved = false
      do
        local over = es < now_s or (es == now_s and en <= now_n)
        local empty = vh == 0 and vl == 0 and uh == 0 and ul == 0
        local far_s, far_n = now_s + 2 * span_s, now_n + 2 * span_n
        if far_n >= SECOND then far_s, far_n = far_s + 1, far_n - SECOND end
        if far_n >= SECOND then far_s, far_n = far_s + 1, far_n - SECOND end
        local far = es > far_s or (es == far_s and en > far_n)
        local ns, nn = es + span_s, en + span_n
        if nn >= SECOND then ns, nn = ns + 1, nn - SECOND end
        if ns > 18446744073 or (ns == 18446744073 and nn > 709551615) then ns, nn = 18446744073, 709551615 end
        if over and not empty and (ns > now_s or (ns == now_s and nn > now_n)) then
          es, en, vh, vl, uh, ul, moved = ns, nn, uh, ul, 0, 0, true
        elseif over or far or empty then
          -- @include arithmetic.window_of_now
          if over or empty then vh, vl, uh, ul = 0, 0, 0, 0 end
          es, en, moved = end_s, end_n, true
        end
      end

-- @part look
      -- How much of the older window still counts.
      local os, on = es - now_s, en - now_n
      if on < 0 then os, on = os - 1, on + SECOND end
      if os > span_s or (os == span_s and on > span_n) then os, on = span_s, span_n end
      do
        local dh, dl = lh - uh - mh, ll - ul - ml
        if dl < 0 then dh, dl = dh - 1, dl + TWO_32 end
        if dl < 0 then dh, dl = dh - 1, dl + TWO_32 end
        if dh < 0 then
          admits = false
        elseif vh < dh or (vh == dh and vl <= dl) then
          admits = true
        else
          admits = fits(vh, vl, os, on, dh, dl, span_s, span_n)
        end
      end
      plan[base + 5], plan[base + 6], plan[base + 7], plan[base + 8], plan[base + 9] = es, en, vh, vl, moved
      plan[base + 10], plan[base + 11], plan[base + 12], plan[base + 13], plan[base + 14] =
        cost_h, cost_l, uh, ul, span_s
      plan[base + 15], plan[base + 16] = span_n, bit16 and {os, on, lh, ll}

-- @part settle
        local es, en, vh, vl, moved = plan[base + 5], plan[base + 6], plan[base + 7], plan[base + 8], plan[base + 9]
        local cost_h, cost_l, uh, ul, span_s, span_n =
          plan[base + 10], plan[base + 11], plan[base + 12], plan[base + 13], plan[base + 14], plan[base + 15]
        local most = plan[base + 16]
        if effect == 0 or effect == 3 then
          cost_h, cost_l = 0, 0
        elseif effect == 1 and most then
          -- Room is what the limit leaves beside the newer count and the least that covers the older one: searched by
          -- halves, first its high part, then its low.
          local os, on = most[1], most[2]
          local low, high = 0, vh
          while low < high do
            local middle = (low + high - (low + high) % 2) / 2
            if fits(vh, vl, os, on, middle, TWO_32 - 1, span_s, span_n) then high = middle else low = middle + 1 end
          end
          local dh = low
          low, high = 0, TWO_32 - 1
          while low < high do
            local middle = (low + high - (low + high) % 2) / 2
            if fits(vh, vl, os, on, dh, middle, span_s, span_n) then high = middle else low = middle + 1 end
          end
          local rh, rl = most[3] - uh - dh, most[4] - ul - low
          if rl < 0 then rh, rl = rh - 1, rl + TWO_32 end
          if rl < 0 then rh, rl = rh - 1, rl + TWO_32 end
          if rh < 0 then rh, rl = 0, 0 end
          if rh < cost_h or (rh == cost_h and rl < cost_l) then cost_h, cost_l = rh, rl end
        end
        uh, ul = uh + cost_h, ul + cost_l
        if ul >= TWO_32 then uh, ul = uh + 1, ul - TWO_32 end
        if uh >= TWO_32 then uh, ul = TWO_32 - 1, TWO_32 - 1 end
        if effect > 0 and (uh > 0 or ul > 0 or vh > 0 or vl > 0) then
          if moved or cost_h > 0 or cost_l > 0 then
            state_s[bucket], state_n[bucket], count_h[bucket], count_l[bucket], newer_h[bucket], newer_l[bucket], kinds[bucket] =
              es, en, vh, vl, uh, ul, 2
          end

-- @part due
          -- The newer count weighs for one window more.
          if uh > 0 or ul > 0 then es, en = es + span_s, en + span_n end
          due[bucket] = es * 1000 + (en + 999999 - (en + 999999) % 1000000) / 1000000 + 1 + later * 1000
