if keys == 1 and A[1] and not held[1] then foreign = foreign + call('EXISTS', KEYS[1]) end
