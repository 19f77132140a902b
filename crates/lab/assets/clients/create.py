"""Creates a rule with the client that openapi-generator made, reads it again and deletes it."""

import os

import tollgate_client as tollgate

configuration = tollgate.Configuration(host=os.environ["TOLLGATE_ADMIN"], access_token=os.environ["TOLLGATE_TOKEN"])
with tollgate.ApiClient(configuration) as client:
    rules = tollgate.RulesApi(client)
    rule = tollgate.RuleInput(rule_id="from-python", limit=tollgate.Limit(requests=10, window="1m"))
    made = rules.create_rule(tollgate.CreateRuleRequest(rule))
    assert made.rule_id == "from-python", made
    read = rules.get_rule_with_http_info("from-python")
    assert read.data.limit.requests == 10, read.data
    headers = {name.lower(): value for name, value in read.headers.items()}  # their case is the server's choice
    rules.delete_rule("from-python", if_match=headers["etag"])
