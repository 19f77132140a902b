        local s, n, clamped, queue = plan[j + 5], plan[j + 6], plan[j + 7], plan[j + 8]
        local cs, cn, bs, bn = plan[j + 9], plan[j + 10], plan[j + 13], plan[j + 14]
        local es, en = s, n
        if effect == 1 and (plan[j + 15] > 0 or plan[j + 16] > 0) then
          -- As many whole intervals as fit, at most the cost.
          local ms, mn = plan[j + 15], plan[j + 16]
          local xs, xn = plan[j + 11] - s, plan[j + 12] - n
          if queue then xs, xn = xs + ms, xn + mn end
          if xn < 0 then xs, xn = xs - 1, xn + G end
          if xn >= G then xs, xn = xs + 1, xn - G end
          local rs, rn = xs, xn
