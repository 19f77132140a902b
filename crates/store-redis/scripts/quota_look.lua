      plan[j + 15], plan[j + 16], plan[j + 17] = uh, ul, runs
      plan[j + 18], plan[j + 19], plan[j + 20] = ks, kn, {qs, qn}
