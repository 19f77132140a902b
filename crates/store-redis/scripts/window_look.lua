      do
        local sh, sl = vh + mh, vl + ml
        if sl >= H then sh, sl = sh + 1, sl - H end
        admits = sh < lh or (sh == lh and sl <= ll)
      end
      plan[j + 5], plan[j + 6], plan[j + 7], plan[j + 8], plan[j + 9] = es, en, vh, vl, moved
      plan[j + 10], plan[j + 11], plan[j + 12], plan[j + 13], plan[j + 14] = ch, cl, bit16, lh, ll
