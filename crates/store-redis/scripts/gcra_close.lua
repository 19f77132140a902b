  end
end
return {S, N, verdicts, held}
