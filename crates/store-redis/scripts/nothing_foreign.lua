-- What MGET calls absent may be of another type; nothing of ours is.
if keys > 1 then
  local new
  for k = 1, keys do
    if A[k] and not held[k] then
      new = new or {'EXISTS'}
      new[#new + 1] = KEYS[k]
    end
  end
  if new and call(unpack(new)) > 0 then return {S, N, 'TYPE'} end
end
