// Creates a rule with the client that openapi-generator made, reads it again and deletes it. TOLLGATE_ADMIN, TOLLGATE_TOKEN.
package main

import (
	"context"
	"fmt"
	"os"

	tollgate "tollgate/client"
)

func main() {
	configuration := tollgate.NewConfiguration()
	configuration.Servers = tollgate.ServerConfigurations{{URL: os.Getenv("TOLLGATE_ADMIN")}}
	client := tollgate.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), tollgate.ContextAccessToken, os.Getenv("TOLLGATE_TOKEN"))

	limit := tollgate.NewLimit()
	limit.SetRequests(10)
	limit.SetWindow("1m")
	input := tollgate.NewRuleInput()
	input.SetRuleId("from-go")
	input.SetLimit(*limit)
	body := tollgate.CreateRuleRequest{RuleInput: input}
	made, _, err := client.RulesAPI.CreateRule(ctx).CreateRuleRequest(body).Execute()
	must(err)
	if made.Rule == nil || made.Rule.GetRuleId() != "from-go" {
		must(fmt.Errorf("not the rule: %+v", made))
	}
	_, response, err := client.RulesAPI.GetRule(ctx, "from-go").Execute()
	must(err)
	_, _, err = client.RulesAPI.DeleteRule(ctx, "from-go").IfMatch(response.Header.Get("ETag")).Execute()
	must(err)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
