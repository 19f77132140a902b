              rs, rn = ws - rs, wn - rn
              if rn < 0 then rs, rn = rs - 1, rn + G end
            elseif rs > ws or (rs == ws and rn > wn) then
              -- It has not begun.
