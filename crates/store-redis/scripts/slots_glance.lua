      -- Beyond 2^53 microseconds, in the year 2255, a score would not be exact.
      local now = S * 1000000 + (N - N % 1000) / 1000
      local bound = math.min(now + ws * 1000000 + (wn - wn % 1000) / 1000, 9007199254740992)
      local last = redis.pcall('ZRANGE', KEYS[k], -1, -1, 'WITHSCORES')
      if last.err then
        if string.find(last.err, 'WRONGTYPE', 1, true) then return {S, N, 'TYPE'} end
        return last
      end
      local newest = last[2] and tonumber(last[2])
