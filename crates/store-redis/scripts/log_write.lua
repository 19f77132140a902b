for i = 1, logs and #logs or 0 do
  local log = logs[i]
  local key, entry = log.key, nil
  if not log.same then
    if log.live == 0 then
      if log.many > 0 then call('DEL', key) end
      log.fs, log.fn = 0, 0
    end
    if log.pushes then
      local s, n = log.at_s + log.fs, log.at_n + log.fn
      if n >= G then s, n = s + 1, n - G end
      entry = log.lh == 0 and pack('<I5I4I4', s, n, log.ll) or pack('<I5I4I4I4', s, n, log.lh, log.ll)
    end
    local head = pack('<I4I4I5I4', log.sh, log.sl, log.fs, log.fn)
    if log.live == 0 then
      if entry then call('RPUSH', key, head, entry) end
    else
      if log.gone > 0 then call('LTRIM', key, log.gone, -1) end
      call('LSET', key, 0, head)
      if log.joins then
        call('LSET', key, -1, entry)
      elseif entry then
        call('RPUSH', key, entry)
      end
    end
  end
  if log.is_left then
    local s, n = log.newest_s + log.ws, log.newest_n + log.wn
    local at = s * 1000 + (n + 999999 - (n + 999999) % 1000000) / 1000000 + 1 + later * 1000
    -- Where nothing is written, only an expiry that was lost is set again.
    if log.same then call('PEXPIREAT', key, at, 'NX') else call('PEXPIREAT', key, at) end
  end
end
