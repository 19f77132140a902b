      local j, admits, absent, special = i * 20, false, not (held[k] or A[k]), f ~= 1
      local needs_room, bit64, bit32, bit16, shadow, counts, force = false, false, false, false, false, false, false
      if special then
        if f >= 128 then needs_room, f = true, f - 128 end
        if f >= 64 then bit64, f = true, f - 64 end
        if f >= 32 then bit32, f = true, f - 32 end
        if f >= 16 then bit16, f = true, f - 16 end
        if f >= 8 then shadow, f = true, f - 8 end
        if f >= 4 then counts, f = true, f - 4 end
        if f >= 2 then force, f = true, f - 2 end
      end
