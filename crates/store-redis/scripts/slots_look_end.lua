      local after, count, holds = show('(%.0f', now), 0, false
      if newest and newest > now then
        count = call('ZCOUNT', KEYS[k], after, '+inf')
      else
        newest = false
      end
      if code > 1 and count > 0 then
        local score = call('ZSCORE', KEYS[k], id)
        holds = score and tonumber(score) > now
      end
      local slots = lh * H + ll
      if code == 3 then
        admits = holds
      elseif code == 1 then
        admits = count <= slots
      else
        admits = (code == 2 and holds) or count < slots
      end
      absent = not last[2]
      held[k] = not absent and {}
      plan[j + 5], plan[j + 6], plan[j + 7], plan[j + 8], plan[j + 9] = code, id, now, bound, newest
      plan[j + 10], plan[j + 11], plan[j + 12], plan[j + 13], plan[j + 14] = after, count, holds, slots, admits
      plan[j + 15] = absent
