    local es, en, clamped = cs, cn, false
    if s > S or (s == S and n > N) then
      s, n = s - S, n - N
      if n < 0 then s, n = s - 1, n + G end
      if s > bs or (s == bs and n > bn) then s, n, clamped = bs, bn, true end
      es, en = s + cs, n + cn
      if en >= G then es, en = es + 1, en - G end
    end
    if es < ls or (es == ls and en <= ln) then
      told = told * 4 + 1
      s, n, clamped = es, en, true
    else
      told = told * 4
    end
    if clamped and (s > 0 or n > 0) then
      s, n = S + s, N + n
      if n >= G then s, n = s + 1, n - G end
      if s > 18446744073 or (s == 18446744073 and n > 709551615) then s, n = 18446744073, 709551615 end
      A[k], B[k] = s, n
    end
  else
    -- Several charges, or something special about one.
    local refused = q >= 32768
    if refused then q = q - 32768 end
    if q < 1 then return {S, N, 'ARGS'} end
    plan = plan or {
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    }
    local passes, room = not refused, true
    for i = 0, q - 1 do
      if i > 0 then
        if p + 32 > length then return {S, N, 'ARGS'} end
        local next
        next, kind, f, k, cs, cn, ls, ln, bs, bn, p = read('<I2BBI2I5I4I5I4I5I4', blob, p)
        if next > 0 or k < 1 or k > keys or kind > 0 or cn >= G or ln >= G or bn >= G then return {S, N, 'ARGS'} end
      end
