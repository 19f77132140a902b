      if p + 26 > length then return {S, N, 'ARGS'} end
      cs, cn, ls, ln, bs, bn, p = read('<I5I4I5I4I5I4', blob, p)
      if cn >= G or ln >= G or bn >= G then return {S, N, 'ARGS'} end
