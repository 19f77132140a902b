-- True if the count (ph, pl) times the span (os, on) is at most the count (dh, dl) times the span (ws, wn). Products of
-- 128 bits, in limbs of 22: column by column, from the difference of both, and the sign of what is left says it.
local function fits(ph, pl, os, on, dh, dl, ws, wn)
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
  low = ws % L
  high = (ws - low) / L
  local d0, d1, d2 = low * 1755648 + wn, low * 238 + high * 1755648, high * 238
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
