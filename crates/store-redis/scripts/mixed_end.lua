if keys == 1 and A[1] and not held[1] then
  if call('EXISTS', KEYS[1]) > 0 then return {S, N, 'TYPE'} end
end
