      if runs and es == ts and en == tn then
        if ch > vh or (ch == vh and cl > vl) then ch, cl = vh, vl end
        vh, vl = vh - ch, vl - cl
        if vl < 0 then vh, vl = vh - 1, vl + H end
        if ch > 0 or cl > 0 then given = given + 1 end
        A[k], B[k], C[k], D[k], E[k], F[k], keep_s[k], keep_n[k], kinds[k] = es, en, vh, vl, uh, ul, ks, kn, 5
