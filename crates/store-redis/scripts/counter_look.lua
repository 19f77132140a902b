      -- How much of the older window still counts.
      local os, on = es - S, en - N
      if on < 0 then os, on = os - 1, on + G end
      if os > ws or (os == ws and on > wn) then os, on = ws, wn end
      do
        local dh, dl = lh - uh - mh, ll - ul - ml
        if dl < 0 then dh, dl = dh - 1, dl + H end
        if dl < 0 then dh, dl = dh - 1, dl + H end
        if dh < 0 then
          admits = false
        elseif vh < dh or (vh == dh and vl <= dl) then
          admits = true
        else
          admits = fits(vh, vl, os, on, dh, dl, ws, wn)
        end
      end
      plan[j + 5], plan[j + 6], plan[j + 7], plan[j + 8], plan[j + 9] = es, en, vh, vl, moved
      plan[j + 10], plan[j + 11], plan[j + 12], plan[j + 13], plan[j + 14] = ch, cl, uh, ul, ws
      plan[j + 15], plan[j + 16] = wn, bit16 and {os, on, lh, ll}
