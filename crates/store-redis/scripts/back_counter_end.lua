      ts, tn = ts - es, tn - en
      if tn < 0 then ts, tn = ts - 1, tn + G end
      local newer = ts == 0 and tn == 0
      ts, tn = ts + ws, tn + wn
      if tn >= G then ts, tn = ts + 1, tn - G end
      if newer or (ts == 0 and tn == 0) then
        local h, l = vh, vl
        if newer then h, l = uh, ul end
        if ch > h or (ch == h and cl > l) then ch, cl = h, l end
        h, l = h - ch, l - cl
        if l < 0 then h, l = h - 1, l + H end
        if newer then uh, ul = h, l else vh, vl = h, l end
        if ch > 0 or cl > 0 then given = given + 1 end
        A[k], B[k], C[k], D[k], E[k], F[k], kinds[k] = es, en, vh, vl, uh, ul, 2
