          -- (hs, hn), the end of some window, becomes the end of the one that holds now.
          do
            local ms, mn = ws, wn
            local rs, rn = hs - S, hn - N
            if rn < 0 then rs, rn = rs - 1, rn + G end
            if rs < 0 or (rs == 0 and rn == 0) then
              -- It is over: ours ends as long after now as that one ended before, but for whole windows.
              rs, rn = S - hs, N - hn
              if rn < 0 then rs, rn = rs - 1, rn + G end
