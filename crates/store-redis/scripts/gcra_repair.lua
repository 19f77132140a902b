    -- Nothing is written, but nothing stays for ever: whoever lost its expiry gets it back.
    local value = held[k]
    local s, n = 0, tonumber(sub(value, -9))
    if #value > 9 then s = tonumber(sub(value, 1, -10)) end
    local at, ms = s + later, (n + 1999999 - (n + 999999) % 1000000) / 1000000
    if ms >= 1000 then at, ms = at + 1, ms - 1000 end
    call('PEXPIREAT', KEYS[k], show('%d%03d', at, ms), 'NX')
