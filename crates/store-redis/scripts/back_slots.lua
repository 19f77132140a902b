    -- Whoever is gone or too far ahead is tidied first, so that only a slot that is held is released.
    local key = KEYS[k]
    redis.call('ZREMRANGEBYSCORE', key, '-inf', show('%.0f', now))
    if newest and newest > bound then
      local far = redis.call('ZRANGEBYSCORE', key, show('(%.0f', bound), '+inf')
      for i = 1, #far do redis.call('ZADD', key, show('%.0f', bound), far[i]) end
    end
    given = given + redis.call('ZREM', key, ch)
    last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
    if last[2] then
      newest = tonumber(last[2])
      redis.call('PEXPIREAT', key, (newest + 999 - (newest + 999) % 1000) / 1000 + 1 + later)
    end
  end
end
