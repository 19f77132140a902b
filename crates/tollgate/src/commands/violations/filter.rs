//! The flags and the column that `list` and `top` share.

use serde_json::Value;

use crate::admin::PeriodArgs;
use crate::client::ApiCall;
use tollgate_terminal::member;

/// Filters by client, rule and period.
#[derive(Clone, Debug, clap::Args)]
pub struct FilterArgs {
    /// Only of this client
    #[arg(long, value_name = "KEY")]
    client: Option<String>,
    /// Only by this rule
    #[arg(long, value_name = "RULE_ID")]
    rule: Option<String>,
    /// Only of rules in shadow mode (true), or only of others (false)
    #[arg(long, value_name = "BOOL")]
    shadow: Option<bool>,
    #[command(flatten)]
    period: PeriodArgs,
}

impl FilterArgs {
    /// Adds the filter to the query of a call.
    pub fn restrict(&self, call: ApiCall) -> ApiCall {
        let shadow = self.shadow.map(|shadow| shadow.to_string());
        let call = call.query_each([
            ("client_key", self.client.as_deref()),
            ("rule_id", self.rule.as_deref()),
            ("shadow", shadow.as_deref()),
        ]);
        self.period.restrict(call)
    }
}

/// How many requests were denied; marked if the rule was in shadow mode and denied none in fact.
pub fn refused(entry: &Value) -> String {
    let refused = member(entry, "refused");
    if entry.get("shadow") == Some(&Value::Bool(true)) { format!("{refused} (shadow)") } else { refused }
}
