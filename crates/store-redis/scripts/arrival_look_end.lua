      local ahead, part, clamped = 0, 0, false
      if s > S or (s == S and n > N) then
        ahead, part = s - S, n - N
        if part < 0 then ahead, part = ahead - 1, part + G end
        if not bit16 and (ahead > bs or (ahead == bs and part > bn)) then ahead, part, clamped = bs, bn, true end
      end
      local es, en = ahead + ms, part + mn
      if en >= G then es, en = es + 1, en - G end
      admits = es < ls or (es == ls and en <= ln)
      plan[j + 5], plan[j + 6], plan[j + 7], plan[j + 8], plan[j + 9] = ahead, part, clamped, es, en
      plan[j + 10] = special
      if special then
        plan[j + 11], plan[j + 12], plan[j + 13], plan[j + 14], plan[j + 15] = cs, cn, ls, ln, bs
        plan[j + 16], plan[j + 17], plan[j + 18], plan[j + 19] = bn, is, xn, bit64
      end
