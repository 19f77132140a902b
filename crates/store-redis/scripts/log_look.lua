      -- A sliding log (SPEC 5.5): a list of its sum and of how far its times are shifted, then the entries, oldest first:
      -- time and cost. Numbers: the window, the limit that decides, the limit that is told, what must fit, cost.
      if p + 28 > length then return {S, N, 'ARGS'} end
      local ws, wn, most, shown, mh, ml, ch, cl
      ws, wn, most, shown, mh, ml, ch, cl, p = read('<I5I4I2I2I4I4I4I4', blob, p)
      if wn >= G or (ws == 0 and wn == 0) then return {S, N, 'ARGS'} end
      local chunk, from = redis.pcall('LRANGE', KEYS[k], 0, 7), 0
      if chunk.err then
        if not find(chunk.err, 'WRONGTYPE', 1, true) then return chunk end
        call('DEL', KEYS[k])
        chunk, foreign = {}, foreign + 1
      end
      local log = {ws = ws, wn = wn, most = most, shown = shown, mh = mh, ml = ml, ch = ch, cl = cl, up_to = bit16}
      plan[j + 5] = log
