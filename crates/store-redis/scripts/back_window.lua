  elseif kind == 1 or kind == 2 then
    -- The length of the windows, the end of one, units, stamp.
    if p + 34 > length then return {S, N, 'ARGS'} end
    local ws, wn, hs, hn, ch, cl, ts, tn
    ws, wn, hs, hn, ch, cl, ts, tn, p = read('<I5I4I5I4I4I4I5I4', blob, p)
    if wn >= G or hn >= G or tn >= G or (ws == 0 and wn == 0) then return {S, N, 'ARGS'} end
    if not there then
    elseif kind == 1 then
