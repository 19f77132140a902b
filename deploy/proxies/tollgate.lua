-- http-request lua.tollgate URL
-- Asks whether the request may pass. Sets txn.limit_status (0: no answer), limit_state, limit_policy, limit_retry,
-- limit_most, limit_left, limit_reset and limit_body. Every value of a header is sent on, so that one sent twice is noticed.
core.register_action("tollgate", { "http-req" }, function(txn, url)
  local headers = {
    ["x-forwarded-method"] = { txn.f:method() },
    ["x-forwarded-uri"]    = { txn.f:pathq() },
    ["x-forwarded-for"]    = { txn.f:src() },
  }
  for _, name in ipairs({ "x-api-key" }) do
    local sent = txn.http:req_get_headers()[name]
    if sent then
      headers[name] = {}
      for place = 0, #sent do headers[name][place + 1] = sent[place] end
    end
  end
  local answer = core.httpclient():get{ url = url, timeout = 500, headers = headers }
  if not answer or not answer.status or answer.status == 0 or answer.status >= 500 then
    txn:set_var("txn.limit_status", 0)
    return
  end
  txn:set_var("txn.limit_status", answer.status)
  txn:set_var("txn.limit_body", answer.body or "")
  local names = {
    limit_state = "ratelimit", limit_policy = "ratelimit-policy", limit_retry = "retry-after",
    limit_most = "x-ratelimit-limit", limit_left = "x-ratelimit-remaining", limit_reset = "x-ratelimit-reset",
  }
  for variable, name in pairs(names) do
    local values = answer.headers and answer.headers[name]
    if values then txn:set_var("txn." .. variable, values[0] or values[1]) end
  end
end, 1)
