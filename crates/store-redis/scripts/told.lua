      end
    end
  end
  digits = digits + 1
  if digits == 24 then
    verdicts = verdicts or {}
    verdicts[#verdicts + 1], told, digits = told, 0, 0
  end
end
if not verdicts then
  verdicts = {told}
elseif digits > 0 then
  verdicts[#verdicts + 1] = told
end
