      -- Beyond 2^53 microseconds, in the year 2255, a score would not be exact.
      local now = S * 1000000 + (N - N % 1000) / 1000
      local bound = math.min(now + ws * 1000000 + (wn - wn % 1000) / 1000, 9007199254740992)
      local last = redis.pcall('ZRANGE', KEYS[k], -1, -1, 'WITHSCORES')
      if last.err then
        if not find(last.err, 'WRONGTYPE', 1, true) then return last end
        call('DEL', KEYS[k])
        last, foreign = {}, foreign + 1
      end
      local newest = last[2] and tonumber(last[2])
