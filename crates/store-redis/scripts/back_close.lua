  end
end
return {S, N, given}
