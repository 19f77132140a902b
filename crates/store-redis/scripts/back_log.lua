    local key, place, at = KEYS[k], nil, nil
    local ks, kn = ts + fs, tn + fn
    if kn >= G then ks, kn = ks + 1, kn - G end
    -- The newest entry that is not younger than the stamp. It must be of that instant; a shift below zero leaves several
    -- entries at zero.
    local low, high, same = log.gone + 1, many, false
    while low <= high do
      local middle = (low + high - (low + high) % 2) / 2
      local entry = call('LINDEX', key, middle)
      local s, n = read('<I5I4', entry)
      if s < ks or (s == ks and n <= kn) then
        place, at, same, low = middle - log.gone, entry, s == ks and n == kn, middle + 1
      else
        high = middle - 1
      end
    end
    if not same and (ts > 0 or tn > 0) then place = nil end
    if log.live == 0 then
      if many > 0 then call('DEL', key) end
    elseif place or log.gone > 0 or log.shifted then
      if log.gone > 0 then call('LTRIM', key, log.gone, -1) end
      if place then
        local s, n, h, l
        if #at == 13 then h, s, n, l = 0, read('<I5I4I4', at) else s, n, h, l = read('<I5I4I4I4', at) end
        if ch > h or (ch == h and cl > l) then ch, cl = h, l end
        if ch > 0 or cl > 0 then given = given + 1 end
        h, l, uh, ul = h - ch, l - cl, uh - ch, ul - cl
        if l < 0 then h, l = h - 1, l + H end
        if ul < 0 then uh, ul = uh - 1, ul + H end
        if h == 0 and l == 0 then
          -- Nothing else of a log is empty.
          call('LSET', key, place, '')
          call('LREM', key, 1, '')
          log.live = log.live - 1
        else
          call('LSET', key, place, h == 0 and pack('<I5I4I4', s, n, l) or pack('<I5I4I4I4', s, n, h, l))
        end
      end
      if log.live == 0 then
        call('DEL', key)
      else
        call('LSET', key, 0, pack('<I4I4I5I4', uh, ul, fs, fn))
        local s, n = read('<I5I4', call('LINDEX', key, -1))
        s, n = s - fs + ws, n - fn + wn
        if n < 0 then s, n = s - 1, n + G end
        call('PEXPIREAT', key, s * 1000 + (n + 999999 - (n + 999999) % 1000000) / 1000000 + 1 + later * 1000)
      end
    end
  else
