      -- A quota: the end of its period, units used and carried, and how long it is kept after its end.
      local es, en, vh, vl, uh, ul, ks, kn = A[k], B[k], C[k], D[k], E[k], F[k], keep_s[k], keep_n[k]
      if not es then
        local value = held[k]
        if value and #value == 34 then es, en, vh, vl, uh, ul, ks, kn = read('<I5I4I4I4I4I4I5I4', value) end
        if not es or es > 18446744073 or en >= G or ks > 18446744073 or kn >= G then
          es, en, vh, vl, uh, ul, ks, kn = 0, 0, 0, 0, 0, 0, 0, 0
          if value then
            call('DEL', KEYS[k])
            held[k], foreign = false, foreign + 1
          end
        end
      end
      -- Its period is not over, and something is in it.
      local runs = (es > S or (es == S and en > N))
        and (vh > 0 or vl > 0 or uh > 0 or ul > 0 or ks > 0 or kn > 0)
