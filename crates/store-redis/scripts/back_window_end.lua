      if es == ts and en == tn and (vh > 0 or vl > 0) then
        if ch > vh or (ch == vh and cl > vl) then ch, cl = vh, vl end
        vh, vl = vh - ch, vl - cl
        if vl < 0 then vh, vl = vh - 1, vl + H end
        if ch > 0 or cl > 0 then given = given + 1 end
        A[k], B[k], C[k], D[k], kinds[k] = es, en, vh, vl, 1
        due[k] = es * 1000 + (en + 999999 - (en + 999999) % 1000000) / 1000000 + 1 + later * 1000
      end
    else
