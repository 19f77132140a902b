      if needs_room and absent then room = false end
      if not (admits or shadow) then passes = false end
      -- What becomes of it if the request passes, and if it does not: 0 nothing, 1 charge, 2 force, 3 refuse.
      local good, bad = 0, 0
      if f == 1 then
        if force then
          good, bad = 2, 2
        else
          bad = counts and 2 or 3
          good = admits and 1 or bad
        end
      end
      plan[j + 1], plan[j + 2], plan[j + 3], plan[j + 4] = kind, k, good, bad
    end
    if not room then
      told = told * 4 + 2
    else
      told = told * 4 + (passes and 1 or 0)
      for i = 0, q - 1 do
        local j = i * 20
        local kind, k = plan[j + 1], plan[j + 2]
        local effect = plan[j + (passes and 3 or 4)]
