        local es, en, vh, vl, moved = plan[j + 5], plan[j + 6], plan[j + 7], plan[j + 8], plan[j + 9]
        local ch, cl, uh, ul, ws, wn = plan[j + 10], plan[j + 11], plan[j + 12], plan[j + 13], plan[j + 14], plan[j + 15]
        local most = plan[j + 16]
        if effect == 0 or effect == 3 then
          ch, cl = 0, 0
        elseif effect == 1 and most then
          -- Room is what the limit leaves beside the newer count and the least that covers the older one: searched by
          -- halves, first its high part, then its low.
          local os, on = most[1], most[2]
          local low, high = 0, vh
          while low < high do
            local middle = (low + high - (low + high) % 2) / 2
            if fits(vh, vl, os, on, middle, H - 1, ws, wn) then high = middle else low = middle + 1 end
          end
          local dh = low
          low, high = 0, H - 1
          while low < high do
            local middle = (low + high - (low + high) % 2) / 2
            if fits(vh, vl, os, on, dh, middle, ws, wn) then high = middle else low = middle + 1 end
          end
          local rh, rl = most[3] - uh - dh, most[4] - ul - low
          if rl < 0 then rh, rl = rh - 1, rl + H end
          if rl < 0 then rh, rl = rh - 1, rl + H end
          if rh < 0 then rh, rl = 0, 0 end
          if rh < ch or (rh == ch and rl < cl) then ch, cl = rh, rl end
        end
        uh, ul = uh + ch, ul + cl
        if ul >= H then uh, ul = uh + 1, ul - H end
        if uh >= H then uh, ul = H - 1, H - 1 end
        if effect > 0 and (uh > 0 or ul > 0 or vh > 0 or vl > 0) then
          if moved or ch > 0 or cl > 0 then
            A[k], B[k], C[k], D[k], E[k], F[k], kinds[k] = es, en, vh, vl, uh, ul, 2
          end
