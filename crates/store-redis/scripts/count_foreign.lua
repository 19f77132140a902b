-- What MGET calls absent may be of another type; what is written replaces it.
if keys > 1 then
  local new
  for k = 1, keys do
    if A[k] and not held[k] then
      new = new or {'EXISTS'}
      new[#new + 1] = KEYS[k]
    end
  end
  if new then foreign = foreign + call(unpack(new)) end
end
