    -- Gone one millisecond after the arrival time: an absent key and a time in the past mean the same.
    local due = s * 1000 + (n + 999999 - (n + 999999) % 1000000) / 1000000 + 1 + later
    redis.call('SET', KEYS[k], s > 0 and show('%d%09d', s, n) or show('%d', n), 'PXAT', due)
