  elseif due[k] then
    call('PEXPIREAT', KEYS[k], show('%d%03d', (due[k] - due[k] % 1000) / 1000, due[k] % 1000), 'NX')
