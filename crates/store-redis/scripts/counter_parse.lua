      -- A sliding counter (SPEC 5.6): the end of the newer window, and the counts of the older and of the newer one.
      local es, en, vh, vl, uh, ul = A[k], B[k], C[k], D[k], E[k], F[k]
      if not es then
        local value = held[k]
        if not value then
          es, en, vh, vl, uh, ul = 0, 0, 0, 0, 0, 0
        elseif #value == 17 then
          vh, uh, es, en, vl, ul = 0, 0, read('<I5I4I4I4', value)
        elseif #value == 25 then
          es, en, vh, vl, uh, ul = read('<I5I4I4I4I4I4', value)
        else
          return {S, N, 'TYPE'}
        end
      end
