  end
end
if foreign > 0 then return {S, N, verdicts, held, foreign} end
return {S, N, verdicts, held}
