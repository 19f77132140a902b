        local es, en, vh, vl, moved = plan[j + 5], plan[j + 6], plan[j + 7], plan[j + 8], plan[j + 9]
        local ch, cl = plan[j + 10], plan[j + 11]
        if effect == 0 or effect == 3 then
          ch, cl = 0, 0
        elseif effect == 1 and plan[j + 12] then
          local rh, rl = plan[j + 13] - vh, plan[j + 14] - vl
          if rl < 0 then rh, rl = rh - 1, rl + H end
          if rh < 0 then rh, rl = 0, 0 end
          if rh < ch or (rh == ch and rl < cl) then ch, cl = rh, rl end
        end
        vh, vl = vh + ch, vl + cl
        if vl >= H then vh, vl = vh + 1, vl - H end
        if vh >= H then vh, vl = H - 1, H - 1 end
        if effect > 0 and (vh > 0 or vl > 0) then
          if moved or ch > 0 or cl > 0 then A[k], B[k], C[k], D[k], kinds[k] = es, en, vh, vl, 1 end
          due[k] = es * 1000 + (en + 999999 - (en + 999999) % 1000000) / 1000000 + 1 + later * 1000
        end
