for i = 1, slots_due and #slots_due or 0 do
  local key, now, bound, newest, id, absent = unpack(slots_due[i])
  if not absent then call('ZREMRANGEBYSCORE', key, '-inf', show('%.0f', now)) end
  if newest and newest > bound then
    -- Only a clock that stepped back, or a shorter time to live than before, finds anybody here.
    local far = call('ZRANGEBYSCORE', key, show('(%.0f', bound), '+inf')
    for i = 1, #far do call('ZADD', key, show('%.0f', bound), far[i]) end
    newest = bound
  end
  if id then
    call('ZADD', key, show('%.0f', bound), id)
    newest = bound
  end
  if newest then
    call('PEXPIREAT', key, (newest + 999 - (newest + 999) % 1000) / 1000 + 1 + later * 1000)
  end
end
