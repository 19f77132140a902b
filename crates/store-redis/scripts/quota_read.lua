      -- The bounds that the caller proposes: start and end of a period, and the end of the next one. How long a period
      -- is kept to hand units on; amount, overdraft, rollover, what must fit, cost.
      if p + 75 > length then return {S, N, 'ARGS'} end
      local as, an, zs, zn, ns, nn, qs, qn, ah, al, oh, ol, rh, rl, mh, ml, ch, cl
      as, an, zs, zn, ns, nn, qs, qn, p = read('<I5I4I5I4I5I4I5I4', blob, p)
      ah, al, oh, ol, rh, rl, mh, ml, ch, cl, p = read('<I4I4I4I4I4I4I4I4I4I4', blob, p)
      if an >= G or zn >= G or nn >= G or qn >= G then return {S, N, 'ARGS'} end
      if zs < as or (zs == as and zn <= an) or ns < zs or (ns == zs and nn < zn) then return {S, N, 'ARGS'} end
