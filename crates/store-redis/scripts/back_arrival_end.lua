    if there and (queue == 0 or (s == ts and n == tn)) then
      local ahead, part = s - S, n - N
      if part < 0 then ahead, part = ahead - 1, part + G end
      if ahead < 0 then ahead, part = 0, 0 end
      if queue == 1 and (ahead > bs or (ahead == bs and part > bn)) then ahead, part = bs, bn end
      if cs > ahead or (cs == ahead and cn > part) then cs, cn = ahead, part end
      if queue == 0 then
        -- No more than what time has not given back by itself.
        local owed, rest = ts - S, tn - N
        if rest < 0 then owed, rest = owed - 1, rest + G end
        if owed < 0 then owed, rest = 0, 0 end
        if cs > owed or (cs == owed and cn > rest) then cs, cn = owed, rest end
      end
      if cs > is or (cs == is and cn >= xn) then given = given + 1 end
      if queue == 1 or ahead > 0 or part > 0 then
        s, n = S + ahead - cs, N + part - cn
        if n < 0 then s, n = s - 1, n + G end
        if n >= G then s, n = s + 1, n - G end
        A[k], B[k], kinds[k] = s, n, 0
      end
    end
