  elseif kind == 5 then
    -- Units, stamp.
    if p + 16 > length then return {S, N, 'ARGS'} end
    local ch, cl, ts, tn
    ch, cl, ts, tn, p = read('<I4I4I5I4', blob, p)
    if tn >= G then return {S, N, 'ARGS'} end
    if there then
