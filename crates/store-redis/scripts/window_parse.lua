      -- A fixed window (SPEC 5.4): its end and its count. Twelve bytes, where they are enough, take 32 of the server's
      -- memory; the thirteenth would take 16 more.
      local es, en, vh, vl = A[k], B[k], C[k], D[k]
      if not es then
        local value = held[k]
        local size = value and #value
        if size == 12 then
          vh, es, en, vl = 0, read('<I5I4I3', value)
        elseif size == 13 then
          vh, es, en, vl = 0, read('<I5I4I4', value)
        elseif size == 17 then
          es, en, vh, vl = read('<I5I4I4I4', value)
        end
        if not es or es > 18446744073 or en >= G then
          es, en, vh, vl = 0, 0, 0, 0
          if value then
            call('DEL', KEYS[k])
            held[k], foreign = false, foreign + 1
          end
        end
      end
