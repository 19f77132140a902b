              if rs == 0 and rn == 0 then rs, rn = ws, wn end
            end
            hs, hn = S + rs, N + rn
            if hn >= G then hs, hn = hs + 1, hn - G end
            if hs > 18446744073 or (hs == 18446744073 and hn > 709551615) then hs, hn = 18446744073, 709551615 end
          end
