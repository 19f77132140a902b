  end
end
if foreign > 0 then return {S, N, given, foreign} end
return {S, N, given}
