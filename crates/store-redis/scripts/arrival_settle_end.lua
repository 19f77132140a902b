            xs, xn = xs - rs, xn - rn
            if xn < 0 then xs, xn = xs - 1, xn + G end
            if xs < cs or (xs == cs and xn < cn) then cs, cn = xs, xn end
          end
          if effect < 3 then
            es, en = s + cs, n + cn
            if en >= G then es, en = es + 1, en - G end
          end
          if effect == 2 and (es > bs or (es == bs and en > bn)) then
            es, en = bs, bn
            if s > bs or (s == bs and n > bn) then es, en = s, n end
          end
        end
        if effect > 0 and (clamped or es ~= s or en ~= n) and (es > 0 or en > 0) then
          s, n = S + es, N + en
          if n >= G then s, n = s + 1, n - G end
          if s > 18446744073 or (s == 18446744073 and n > 709551615) then s, n = 18446744073, 709551615 end
          A[k], B[k] = s, n
