      -- A sliding counter (SPEC 5.6): the end of the newer window, and the counts of the older and of the newer one.
      local es, en, vh, vl, uh, ul = A[k], B[k], C[k], D[k], E[k], F[k]
      if not es then
        local value = held[k]
        local size = value and #value
        if size == 17 then
          vh, uh, es, en, vl, ul = 0, 0, read('<I5I4I4I4', value)
        elseif size == 25 then
          es, en, vh, vl, uh, ul = read('<I5I4I4I4I4I4', value)
        end
        if not es or es > 18446744073 or en >= G then
          es, en, vh, vl, uh, ul = 0, 0, 0, 0, 0, 0
          if value then
            call('DEL', KEYS[k])
            held[k], foreign = false, foreign + 1
          end
        end
      end
