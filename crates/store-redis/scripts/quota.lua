-- Calendar quotas (kind 5): the end of a period, the units used in it and carried into it, and how long it is kept, a
-- string.

-- @part read
      -- The bounds that the caller proposes: start and end of a period, and the end of the next one. How long a period
      -- is kept to hand units on; amount, overdraft, rollover, grant, what must fit, cost.
      if pos + 83 > length then return {now_s, now_n, 'ARGS'} end
      local start_s, start_n, end_s, end_n, next_s, next_n, hold_s, hold_n
      start_s, start_n, end_s, end_n, next_s, next_n, hold_s, hold_n, pos = read('<I5I4I5I4I5I4I5I4', blob, pos)
      local ah, al, oh, ol, rh, rl, gh, gl, mh, ml, cost_h, cost_l
      ah, al, oh, ol, rh, rl, gh, gl, mh, ml, cost_h, cost_l, pos = read('<I4I4I4I4I4I4I4I4I4I4I4I4', blob, pos)
      if start_n >= SECOND or end_n >= SECOND or next_n >= SECOND or hold_n >= SECOND then
        return {now_s, now_n, 'ARGS'}
      end
      if end_s < start_s or (end_s == start_s and end_n <= start_n) then return {now_s, now_n, 'ARGS'} end
      if next_s < end_s or (next_s == end_s and next_n < end_n) then return {now_s, now_n, 'ARGS'} end

-- @part parse
      -- A quota: the end of its period, units used and carried, and how long it is kept after its end.
      local es, en, vh, vl = state_s[bucket], state_n[bucket], count_h[bucket], count_l[bucket]
      local uh, ul, ks, kn = newer_h[bucket], newer_l[bucket], keep_s[bucket], keep_n[bucket]
      if not es then
        local value = held[bucket]
        if value and #value == 34 then es, en, vh, vl, uh, ul, ks, kn = read('<I5I4I4I4I4I4I5I4', value) end
        if not es or es > 18446744073 or en >= SECOND or ks > 18446744073 or kn >= SECOND then
          es, en, vh, vl, uh, ul, ks, kn = 0, 0, 0, 0, 0, 0, 0, 0
          if value then
            call('DEL', KEYS[bucket])
            held[bucket], foreign = false, foreign + 1
          end
        end
      end
      -- Its period is not over, and something is in it.
      local runs = (es > now_s or (es == now_s and en > now_n))
        and (vh > 0 or vl > 0 or uh > 0 or ul > 0 or ks > 0 or kn > 0)

-- @part turn
      -- The end of the period that holds now, and its start where the bounds tell it. Elsewhere a period lasts at most as
      -- long as the proposed one, and one that has an earlier end keeps it.
      local moved = not runs
      do
        local until_s, until_n, since_s, since_n
        local early = now_s < start_s or (now_s == start_s and now_n < start_n)
        if early or now_s > next_s or (now_s == next_s and now_n >= next_n) then
          until_s, until_n = now_s + end_s - start_s, now_n + end_n - start_n
          if until_n < 0 then until_s, until_n = until_s - 1, until_n + SECOND end
          if until_n >= SECOND then until_s, until_n = until_s + 1, until_n - SECOND end
          if until_s > 18446744073 or (until_s == 18446744073 and until_n > 709551615) then
            until_s, until_n = 18446744073, 709551615
          end
          if early and (start_s < until_s or (start_s == until_s and start_n < until_n)) then
            until_s, until_n = start_s, start_n
          end
          if runs and (es < until_s or (es == until_s and en < until_n)) then until_s, until_n = es, en end
        elseif now_s < end_s or (now_s == end_s and now_n < end_n) then
          until_s, until_n, since_s, since_n = end_s, end_n, start_s, start_n
        else
          until_s, until_n, since_s, since_n = next_s, next_n, end_s, end_n
        end
        -- Granted to the period that the caller proposes, and to no other.
        if since_s ~= start_s or since_n ~= start_n then gh, gl = 0, 0 end
        if not runs then
          local ts, tn = es + ks, en + kn
          if tn >= SECOND then ts, tn = ts + 1, tn - SECOND end
          local follows = since_s == es and since_n == en and (now_s < ts or (now_s == ts and now_n < tn))
          local used_h, used_l, carried_h, carried_l = vh, vl, uh, ul
          vh, vl, uh, ul = 0, 0, 0, 0
          if follows then
            -- What is left of the amount, because carried units are spent first; at most the rollover.
            local left_h, left_l = ah + carried_h, al + carried_l
            if left_l >= TWO_32 then left_h, left_l = left_h + 1, left_l - TWO_32 end
            left_h, left_l = left_h - used_h, left_l - used_l
            if left_l < 0 then left_h, left_l = left_h - 1, left_l + TWO_32 end
            if left_h < 0 then left_h, left_l = 0, 0 end
            if left_h > ah or (left_h == ah and left_l > al) then left_h, left_l = ah, al end
            if left_h > rh or (left_h == rh and left_l > rl) then left_h, left_l = rh, rl end
            uh, ul = left_h, left_l
          end
          ks, kn = hold_s, hold_n
        else
          moved = until_s ~= es or until_n ~= en
          -- The rollover may be lower by now than what was carried.
          if uh > rh or (uh == rh and ul > rl) then uh, ul, moved = rh, rl, true end
        end
        es, en = until_s, until_n
      end
      -- What a period admits: amount, carried and granted units, and the overdraft; nothing without an amount.
      local lh, ll = 0, 0
      if ah > 0 or al > 0 then
        lh, ll = ah + uh + oh + gh, al + ul + ol + gl
        if ll >= TWO_32 then lh, ll = lh + 1, ll - TWO_32 end
        if ll >= TWO_32 then lh, ll = lh + 1, ll - TWO_32 end
        if ll >= TWO_32 then lh, ll = lh + 1, ll - TWO_32 end
        if lh >= TWO_32 then lh, ll = TWO_32 - 1, TWO_32 - 1 end
      end

-- @part look
      -- @include window.look
      plan[base + 15], plan[base + 16], plan[base + 17] = uh, ul, runs
      plan[base + 18], plan[base + 19], plan[base + 20] = ks, kn, {hold_s, hold_n}

-- @part settle
        local es, en, vh, vl, moved = plan[base + 5], plan[base + 6], plan[base + 7], plan[base + 8], plan[base + 9]
        local cost_h, cost_l = plan[base + 10], plan[base + 11]
        local uh, ul, runs, ks, kn = plan[base + 15], plan[base + 16], plan[base + 17], plan[base + 18], plan[base + 19]
        local keep = plan[base + 20]
        if effect == 0 or effect == 3 then
          cost_h, cost_l = 0, 0
        elseif effect == 1 and plan[base + 12] then
          local rh, rl = plan[base + 13] - vh, plan[base + 14] - vl
          if rl < 0 then rh, rl = rh - 1, rl + TWO_32 end
          if rh < 0 then rh, rl = 0, 0 end
          if rh < cost_h or (rh == cost_h and rl < cost_l) then cost_h, cost_l = rh, rl end
        end
        -- A refusal does not change what is handed on.
        if cost_h > 0 or cost_l > 0 then ks, kn, moved = keep[1], keep[2], true end
        vh, vl = vh + cost_h, vl + cost_l
        if vl >= TWO_32 then vh, vl = vh + 1, vl - TWO_32 end
        if vh >= TWO_32 then vh, vl = TWO_32 - 1, TWO_32 - 1 end
        if effect > 0 and (runs or vh > 0 or vl > 0) then
          if moved then
          -- @include quota.keep
          end
          -- @include quota.due
        end

-- @part keep
        state_s[bucket], state_n[bucket], count_h[bucket], count_l[bucket], kinds[bucket] = es, en, vh, vl, 5
        newer_h[bucket], newer_l[bucket], keep_s[bucket], keep_n[bucket] = uh, ul, ks, kn

-- @part due
          local ds, dn = es + ks, en + kn
          if dn >= SECOND then ds, dn = ds + 1, dn - SECOND end
          due[bucket] = ds * 1000 + (dn + 999999 - (dn + 999999) % 1000000) / 1000000 + 1 + later * 1000
