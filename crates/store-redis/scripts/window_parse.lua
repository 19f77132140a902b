      -- A fixed window (SPEC 5.4): its end and its count. Twelve bytes, where they are enough, take 32 of the server's
      -- memory; the thirteenth would take 16 more.
      local es, en, vh, vl = A[k], B[k], C[k], D[k]
      if not es then
        local value = held[k]
        if not value then
          es, en, vh, vl = 0, 0, 0, 0
        elseif #value == 12 then
          vh, es, en, vl = 0, read('<I5I4I3', value)
        elseif #value == 13 then
          vh, es, en, vl = 0, read('<I5I4I4', value)
        elseif #value == 17 then
          es, en, vh, vl = read('<I5I4I4I4', value)
        else
          return {S, N, 'TYPE'}
        end
      end
