      local many, last = #chunk - 1, chunk[#chunk]
      if many == 7 then
        many, last = call('LLEN', KEYS[k]) - 1, call('LINDEX', KEYS[k], -1)
      end
      if many == 0 or (many > 0 and (#chunk[1] ~= 17 or (#last ~= 13 and #last ~= 17))) then
        call('DEL', KEYS[k])
        many, chunk, foreign = -1, {}, foreign + 1
      end
      local uh, ul, fs, fn = 0, 0, 0, 0
      log.key, log.live, log.gone, log.shifted = KEYS[k], 0, 0, false
      log.at_s, log.at_n = S, N
      if many < 0 then
        log.many = 0
      else
        uh, ul, fs, fn = read('<I4I4I5I4', chunk[1])
        log.many = many
        local s, n = read('<I5I4', last)
        s, n = s - fs, n - fn
        if n < 0 then s, n = s - 1, n + G end
        if s < 0 then s, n = 0, 0 end
        -- A step back by a window or more shifts the whole log, so that its newest entry is now.
        local ahead_s, ahead_n = s - S, n - N
        if ahead_n < 0 then ahead_s, ahead_n = ahead_s - 1, ahead_n + G end
        if ahead_s > ws or (ahead_s == ws and ahead_n >= wn) then
          fs, fn, s, n, log.shifted = fs + ahead_s, fn + ahead_n, S, N, true
          if fn >= G then fs, fn = fs + 1, fn - G end
        end
        if s > S or (s == S and n > N) then log.at_s, log.at_n = s, n end
        log.newest_s, log.newest_n = s, n
        -- An entry is gone if its time is at most this one, as times are kept.
        local gs, gn = log.at_s - ws, log.at_n - wn
        if gn < 0 then gs, gn = gs - 1, gn + G end
        if gs >= 0 then
          gs, gn = gs + fs, gn + fn
          if gn >= G then gs, gn = gs + 1, gn - G end
          local i = 1
          while i <= many do
            if i - from >= #chunk then
              chunk, from = call('LRANGE', KEYS[k], i, i + 63), i
            end
            local entry = chunk[i - from + 1]
            local s, n, h, l
            if #entry == 13 then h, s, n, l = 0, read('<I5I4I4', entry) else s, n, h, l = read('<I5I4I4I4', entry) end
            if s > gs or (s == gs and n > gn) then break end
            uh, ul = uh - h, ul - l
            if ul < 0 then uh, ul = uh - 1, ul + H end
            i = i + 1
          end
          log.gone = i - 1
        end
        log.live = many - log.gone
      end
      log.uh, log.ul, log.fs, log.fn, log.chunk, log.from, log.last = uh, ul, fs, fn, chunk, from, last
