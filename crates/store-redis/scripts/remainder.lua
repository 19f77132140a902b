          -- (rs, rn) becomes its remainder by (ms, mn): doubled until too large, then halved and taken off again.
          do
            local us, un = ms, mn
            while us < rs or (us == rs and un <= rn) do
              us, un = us * 2, un * 2
              if un >= G then us, un = us + 1, un - G end
            end
            while us > ms or (us == ms and un > mn) do
              if us % 2 == 1 then us, un = us - 1, un + G end
              us, un = us / 2, un / 2
              if us < rs or (us == rs and un <= rn) then
                rs, rn = rs - us, rn - un
                if rn < 0 then rs, rn = rs - 1, rn + G end
              end
            end
          end
