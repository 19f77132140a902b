    -- An arrival time is kept as decimal nanoseconds; none is one in the past.
    if not s then
      local value = held[k]
      if not value then
        s, n = 0, 0
      else
        if #value > 9 then
          s, n = tonumber(sub(value, 1, -10)), tonumber(sub(value, -9))
        else
          s, n = 0, tonumber(value)
        end
        if not (s and n) or find(value, '%D') or s > 18446744073 or (s == 18446744073 and n > 709551615) then
          call('DEL', KEYS[k])
          s, n, held[k], foreign = 0, 0, false, foreign + 1
        end
      end
    end
