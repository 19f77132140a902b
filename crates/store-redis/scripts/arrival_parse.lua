    -- An arrival time is kept as decimal nanoseconds; none is one in the past.
    if not s then
      local value = held[k]
      if not value then
        s, n = 0, 0
      elseif #value > 9 then
        s, n = tonumber(sub(value, 1, -10)), tonumber(sub(value, -9))
      else
        s, n = 0, tonumber(value)
      end
      if not (s and n and s >= 0 and s < 1099511627776 and n >= 0 and n < G) then return {S, N, 'TYPE'} end
    end
