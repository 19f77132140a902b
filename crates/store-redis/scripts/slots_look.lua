      -- Slots (SPEC 5.7): a sorted set of holders by expiry in microseconds. Numbers: time to live, slots, what is asked
      -- (0 reads, 1 reads for nothing, 2 holds, 3 renews), the holder.
      if p + 33 > length then return {S, N, 'ARGS'} end
      local ws, wn, lh, ll, code, id
      ws, wn, lh, ll, code, id, p = read('<I5I4I4I4Bc16', blob, p)
      if wn >= G or (ws == 0 and wn == 0) or code > 3 then return {S, N, 'ARGS'} end
