      -- The newer window becomes the older one when it is over; two windows later nothing is left.
      local moved = false
      do
        local over = es < S or (es == S and en <= N)
        local empty = vh == 0 and vl == 0 and uh == 0 and ul == 0
        local far_s, far_n = S + 2 * ws, N + 2 * wn
        if far_n >= G then far_s, far_n = far_s + 1, far_n - G end
        if far_n >= G then far_s, far_n = far_s + 1, far_n - G end
        local far = es > far_s or (es == far_s and en > far_n)
        local ns, nn = es + ws, en + wn
        if nn >= G then ns, nn = ns + 1, nn - G end
        if ns > 18446744073 or (ns == 18446744073 and nn > 709551615) then ns, nn = 18446744073, 709551615 end
        if over and not empty and (ns > S or (ns == S and nn > N)) then
          es, en, vh, vl, uh, ul, moved = ns, nn, uh, ul, 0, 0, true
        elseif over or far or empty then
