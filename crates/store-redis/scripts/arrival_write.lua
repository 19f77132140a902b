    -- Gone one millisecond after the arrival time: an absent key and a time in the past mean the same.
    local at, ms = s + later, (n + 1999999 - (n + 999999) % 1000000) / 1000000
    if ms >= 1000 then at, ms = at + 1, ms - 1000 end
    call('SET', KEYS[k], s > 0 and show('%d%09d', s, n) or show('%d', n), 'PXAT', show('%d%03d', at, ms))
