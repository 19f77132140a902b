    -- Whoever is gone or too far ahead is tidied first, so that only a slot that is held is released.
    local key = KEYS[k]
    call('ZREMRANGEBYSCORE', key, '-inf', show('%.0f', now))
    if newest and newest > bound then
      local far = call('ZRANGEBYSCORE', key, show('(%.0f', bound), '+inf')
      for i = 1, #far do call('ZADD', key, show('%.0f', bound), far[i]) end
    end
    given = given + call('ZREM', key, ch)
    last = call('ZRANGE', key, -1, -1, 'WITHSCORES')
    if last[2] then
      newest = tonumber(last[2])
      call('PEXPIREAT', key, (newest + 999 - (newest + 999) % 1000) / 1000 + 1 + later * 1000)
    end
  end
end
