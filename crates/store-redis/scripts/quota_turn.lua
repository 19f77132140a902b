      -- The end of the period that holds now, and its start where the bounds tell it. Elsewhere a period lasts at most as
      -- long as the proposed one, and one that has an earlier end keeps it.
      local moved = not runs
      do
        local hs, hn, ps, pn
        if S < as or (S == as and N < an) or S > ns or (S == ns and N >= nn) then
          hs, hn = S + zs - as, N + zn - an
          if hn < 0 then hs, hn = hs - 1, hn + G end
          if hn >= G then hs, hn = hs + 1, hn - G end
          if hs > 18446744073 or (hs == 18446744073 and hn > 709551615) then hs, hn = 18446744073, 709551615 end
          if (S < as or (S == as and N < an)) and (as < hs or (as == hs and an < hn)) then hs, hn = as, an end
          if runs and (es < hs or (es == hs and en < hn)) then hs, hn = es, en end
        elseif S < zs or (S == zs and N < zn) then
          hs, hn, ps, pn = zs, zn, as, an
        else
          hs, hn, ps, pn = ns, nn, zs, zn
        end
        if not runs then
          local ts, tn = es + ks, en + kn
          if tn >= G then ts, tn = ts + 1, tn - G end
          local follows = ps == es and pn == en and (S < ts or (S == ts and N < tn))
          local used_h, used_l, carried_h, carried_l = vh, vl, uh, ul
          vh, vl, uh, ul = 0, 0, 0, 0
          if follows then
            -- What is left of the amount, because carried units are spent first; at most the rollover.
            local left_h, left_l = ah + carried_h, al + carried_l
            if left_l >= H then left_h, left_l = left_h + 1, left_l - H end
            if left_h >= H then left_h, left_l = H - 1, H - 1 end
            left_h, left_l = left_h - used_h, left_l - used_l
            if left_l < 0 then left_h, left_l = left_h - 1, left_l + H end
            if left_h < 0 then left_h, left_l = 0, 0 end
            if left_h > ah or (left_h == ah and left_l > al) then left_h, left_l = ah, al end
            if left_h > rh or (left_h == rh and left_l > rl) then left_h, left_l = rh, rl end
            uh, ul = left_h, left_l
          end
          ks, kn = qs, qn
        elseif hs ~= es or hn ~= en then
          moved = true
        end
        es, en = hs, hn
      end
      -- What a period admits: all that it offers and the overdraft, but nothing without an amount.
      local lh, ll = 0, 0
      if ah > 0 or al > 0 then
        lh, ll = ah + uh + oh, al + ul + ol
        if ll >= H then lh, ll = lh + 1, ll - H end
        if ll >= H then lh, ll = lh + 1, ll - H end
        if lh >= H then lh, ll = H - 1, H - 1 end
      end
