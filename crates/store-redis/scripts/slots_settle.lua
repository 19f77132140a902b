        local code, id, now, bound, newest = plan[j + 5], plan[j + 6], plan[j + 7], plan[j + 8], plan[j + 9]
        local after, count, holds, slots, admits = plan[j + 10], plan[j + 11], plan[j + 12], plan[j + 13], plan[j + 14]
        local absent, taken = plan[j + 15], effect == 1 and code == 2 and not holds
        local frees = false
        -- Who leaves last before the ask passes: those beyond the slots, and one more unless it only reads. Looked up
        -- before anything is written: a refusal does not change who is there.
        if not admits and count > 0 then
          local leaving = count + ((code == 0 or code == 2) and 1 or 0) - slots - 1
          if leaving < 0 then leaving = 0 end
          local who = call('ZRANGEBYSCORE', KEYS[k], after, '+inf', 'WITHSCORES', 'LIMIT', show('%.0f', leaving), 1)
          frees = who[2] and math.min(tonumber(who[2]), bound) or false
        end
        if code > 1 and effect > 0 then
          local sets = effect == 1 and (holds or taken)
          slots_due = slots_due or {}
          slots_due[#slots_due + 1] = {KEYS[k], now, bound, newest, sets and id, absent}
          if newest and newest > bound then newest = bound end
          if sets then newest = bound end
        end
        held[k] = {
          admits and 1 or 0, taken and absent and 1 or 0, 0, taken and 1 or 0, taken and count + 1 or count, frees, newest,
        }
