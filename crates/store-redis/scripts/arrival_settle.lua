        local s, n, clamped, es, en = plan[j + 5], plan[j + 6], plan[j + 7], plan[j + 8], plan[j + 9]
        if effect ~= 1 or plan[j + 10] then
          es, en = s, n
        end
        if effect > 0 and plan[j + 10] then
          local cs, cn, bs, bn = plan[j + 11], plan[j + 12], plan[j + 15], plan[j + 16]
          local ms, mn = plan[j + 17], plan[j + 18]
          if effect == 1 and (ms > 0 or mn > 0) then
            -- As many whole intervals as fit, at most the cost.
            local xs, xn = plan[j + 13] - s, plan[j + 14] - n
            if plan[j + 19] then xs, xn = xs + ms, xn + mn end
            if xn < 0 then xs, xn = xs - 1, xn + G end
            if xn >= G then xs, xn = xs + 1, xn - G end
            local rs, rn = xs, xn
