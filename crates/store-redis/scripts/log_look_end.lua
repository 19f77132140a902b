      absent = log.many == 0
      held[k] = not absent and {}
      do
        local sh, sl = uh + mh, ul + ml
        if sl >= H then sh, sl = sh + 1, sl - H end
        admits = sh == 0 and sl <= most
        log.admits, log.made = admits and 1 or 0, absent
      end
