      -- A token bucket (SPEC 5.1) or a queue (5.3): cost, tolerance, bound; and if bit32 what must fit and the interval
      -- of an ask for as much as fits. bit16: not clamped; bit64: a queue.
      local ms, mn, is, xn = cs, cn, 0, 0
      if bit32 then
        if p + 17 > length then return {S, N, 'ARGS'} end
        ms, mn, is, xn, p = read('<I5I4I5I4', blob, p)
        if mn >= G or xn >= G then return {S, N, 'ARGS'} end
      end
      local s, n = A[k], B[k]
