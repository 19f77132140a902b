        local log = plan[j + 5]
        local ch, cl, uh, ul = log.ch, log.cl, log.uh, log.ul
        if effect == 0 or effect == 3 then
          ch, cl = 0, 0
        elseif effect == 1 and log.up_to then
          local left = (uh == 0 and ul < log.most) and log.most - ul or 0
          if ch > 0 or cl > left then ch, cl = 0, left end
        end
        -- No more than keeps the sum exact.
        local sh, sl = uh + ch, ul + cl
        if sl >= H then sh, sl = sh + 1, sl - H end
        if sh >= H then
          sh, sl = H - 1, H - 1
          ch, cl = sh - uh, sl - ul
        end
        local pushes = ch > 0 or cl > 0
        local joins = pushes and log.live > 0
          and (log.live >= math.max(log.most, 1) or (log.newest_s == log.at_s and log.newest_n == log.at_n))
        local lh, ll = ch, cl
        if joins then
          if #log.last == 13 then
            ll = ll + read('<I4', log.last, 10)
          else
            lh, ll = lh + read('<I4', log.last, 10), ll + read('<I4', log.last, 14)
          end
          if ll >= H then lh, ll = lh + 1, ll - H end
        end
        -- Whose departure, with all older ones, brings the use down to what leaves room for the cost, and for one more.
        local frees, next = nil, math.min(log.shown, sh > 0 and log.shown or sl) - 1
        if log.mh == 0 and log.ml <= log.shown and (sh > 0 or sl > log.shown - log.ml) then frees = log.shown - log.ml end
        local frees_s, frees_n, next_s, next_n = false, false, false, false
        local rh, rl, i, chunk, from = sh, sl, log.gone + 1, log.chunk, log.from
        local many = joins and log.many - 1 or log.many
        while frees or next >= 0 do
          local s, n, h, l
          if i <= many then
            if i - from >= #chunk then
              chunk, from = call('LRANGE', log.key, i, i + 63), i
            end
            local entry = chunk[i - from + 1]
            if #entry == 13 then h, s, n, l = 0, read('<I5I4I4', entry) else s, n, h, l = read('<I5I4I4I4', entry) end
            s, n = s - log.fs, n - log.fn
            if n < 0 then s, n = s - 1, n + G end
            if s < 0 then s, n = 0, 0 end
          elseif i == many + 1 and pushes then
            s, n, h, l = log.at_s, log.at_n, lh, ll
          else
            break
          end
          rh, rl = rh - h, rl - l
          if rl < 0 then rh, rl = rh - 1, rl + H end
          if frees and rh == 0 and rl <= frees then frees, frees_s, frees_n = nil, s, n end
          if next >= 0 and rh == 0 and rl <= next then next, next_s, next_n = -1, s, n end
          i = i + 1
        end
        if pushes then log.newest_s, log.newest_n = log.at_s, log.at_n end
        local is_left = pushes or log.live > 0
        if effect > 0 and (is_left or log.gone > 0) then
          log.sh, log.sl, log.lh, log.ll, log.pushes, log.joins, log.is_left = sh, sl, lh, ll, pushes, joins, is_left
          log.same = not (pushes or log.gone > 0 or log.shifted)
          logs = logs or {}
          logs[#logs + 1] = log
        end
        held[k] = {
          log.admits, log.made and pushes and 1 or 0, ch, cl, sh, sl, log.at_s, log.at_n, frees_s, frees_n, next_s, next_n,
          is_left and log.newest_s, is_left and log.newest_n,
        }
