      -- Turned if its window is over or nothing is in it; moved to now, count and all, after a far step back.
      local over = es < S or (es == S and en <= N)
      local moved = false
      do
        local far_s, far_n = S + 2 * ws, N + 2 * wn
        if far_n >= G then far_s, far_n = far_s + 1, far_n - G end
        if far_n >= G then far_s, far_n = far_s + 1, far_n - G end
        local far = es > far_s or (es == far_s and en > far_n)
        if over or far or (vh == 0 and vl == 0) then
