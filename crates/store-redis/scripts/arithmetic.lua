-- Exact arithmetic on pairs: spans as seconds and nanoseconds, counts as high and low halves.

-- @part fits
-- True if the count (ph, pl) times the span (os, on) is at most the count (dh, dl) times the span (span_s,
-- span_n). Products of 128 bits, in limbs of 22: column by column, from the difference of both, and the sign of what
-- is left says it.
local function fits(ph, pl, os, on, dh, dl, span_s, span_n)
  local L = 4194304
  local a0 = pl % L
  local a1 = (pl - a0) / L + ph * 1024
  local a2 = (a1 - a1 % L) / L
  a1 = a1 % L
  local c0 = dl % L
  local c1 = (dl - c0) / L + dh * 1024
  local c2 = (c1 - c1 % L) / L
  c1 = c1 % L
  -- A second is 238 * L + 1755648 nanoseconds.
  local low = os % L
  local high = (os - low) / L
  local b0, b1, b2 = low * 1755648 + on, low * 238 + high * 1755648, high * 238
  b1 = b1 + (b0 - b0 % L) / L
  b0 = b0 % L
  b2 = b2 + (b1 - b1 % L) / L
  b1 = b1 % L
  low = span_s % L
  high = (span_s - low) / L
  local d0, d1, d2 = low * 1755648 + span_n, low * 238 + high * 1755648, high * 238
  d1 = d1 + (d0 - d0 % L) / L
  d0 = d0 % L
  d2 = d2 + (d1 - d1 % L) / L
  d1 = d1 % L
  local rest = c0 * d0 - a0 * b0
  rest = (rest - rest % L) / L + c0 * d1 + c1 * d0 - a0 * b1 - a1 * b0
  rest = (rest - rest % L) / L + c0 * d2 + c1 * d1 + c2 * d0 - a0 * b2 - a1 * b1 - a2 * b0
  rest = (rest - rest % L) / L + c1 * d2 + c2 * d1 - a1 * b2 - a2 * b1
  rest = (rest - rest % L) / L + c2 * d2 - a2 * b2
  return rest >= 0
end

-- @part remainder
          -- (rs, rn) becomes its remainder by (ms, mn): doubled until too large, then halved and taken off again.
          do
            local us, un = ms, mn
            while us < rs or (us == rs and un <= rn) do
              us, un = us * 2, un * 2
              if un >= SECOND then us, un = us + 1, un - SECOND end
            end
            while us > ms or (us == ms and un > mn) do
              if us % 2 == 1 then us, un = us - 1, un + SECOND end
              us, un = us / 2, un / 2
              if us < rs or (us == rs and un <= rn) then
                rs, rn = rs - us, rn - un
                if rn < 0 then rs, rn = rs - 1, rn + SECOND end
              end
            end
          end

-- @part window_of_now
          -- (end_s, end_n), the end of some window, becomes the end of the one that holds now.
          do
            local ms, mn = span_s, span_n
            local rs, rn = end_s - now_s, end_n - now_n
            if rn < 0 then rs, rn = rs - 1, rn + SECOND end
            if rs < 0 or (rs == 0 and rn == 0) then
              -- It is over: ours ends as long after now as that one ended before, but for whole windows.
              rs, rn = now_s - end_s, now_n - end_n
              if rn < 0 then rs, rn = rs - 1, rn + SECOND end
          -- @include arithmetic.remainder
              rs, rn = span_s - rs, span_n - rn
              if rn < 0 then rs, rn = rs - 1, rn + SECOND end
            elseif rs > span_s or (rs == span_s and rn > span_n) then
              -- It has not begun.
          -- @include arithmetic.remainder
              if rs == 0 and rn == 0 then rs, rn = span_s, span_n end
            end
            end_s, end_n = now_s + rs, now_n + rn
            if end_n >= SECOND then end_s, end_n = end_s + 1, end_n - SECOND end
            if end_s > 18446744073 or (end_s == 18446744073 and end_n > 709551615) then
              end_s, end_n = 18446744073, 709551615
            end
          end
