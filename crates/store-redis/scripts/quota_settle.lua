        local es, en, vh, vl, moved = plan[j + 5], plan[j + 6], plan[j + 7], plan[j + 8], plan[j + 9]
        local ch, cl, uh, ul, runs = plan[j + 10], plan[j + 11], plan[j + 15], plan[j + 16], plan[j + 17]
        local ks, kn, keep = plan[j + 18], plan[j + 19], plan[j + 20]
        if effect == 0 or effect == 3 then
          ch, cl = 0, 0
        elseif effect == 1 and plan[j + 12] then
          local rh, rl = plan[j + 13] - vh, plan[j + 14] - vl
          if rl < 0 then rh, rl = rh - 1, rl + H end
          if rh < 0 then rh, rl = 0, 0 end
          if rh < ch or (rh == ch and rl < cl) then ch, cl = rh, rl end
        end
        -- A refusal does not change what is handed on.
        if ch > 0 or cl > 0 then ks, kn, moved = keep[1], keep[2], true end
        vh, vl = vh + ch, vl + cl
        if vl >= H then vh, vl = vh + 1, vl - H end
        if vh >= H then vh, vl = H - 1, H - 1 end
        if effect > 0 and (runs or vh > 0 or vl > 0) then
          if moved then
            A[k], B[k], C[k], D[k], E[k], F[k], keep_s[k], keep_n[k], kinds[k] = es, en, vh, vl, uh, ul, ks, kn, 5
          end
