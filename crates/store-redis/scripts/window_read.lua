      -- The length of the windows, the end of the one that the caller takes for ours, limit, what must fit, cost.
      if p + 41 > length then return {S, N, 'ARGS'} end
      local ws, wn, hs, hn, lh, ll, mh, ml, ch, cl
      ws, wn, hs, hn, lh, ll, mh, ml, ch, cl, p = read('<I5I4I5I4I4I4I4I4I4I4', blob, p)
      if wn >= G or hn >= G or (ws == 0 and wn == 0) then return {S, N, 'ARGS'} end
