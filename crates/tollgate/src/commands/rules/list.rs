//! `tollgate rules list`

use anyhow::Result;
use serde_json::Value;

use crate::admin::{EveryScopeArgs, ListArgs, Look, list};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{key_words, limit_words, match_words, member, mode_words, source_words};

/// Which rules.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// That govern this path: /api/orders, or "POST /api/orders"
    #[arg(long, value_name = "PATH")]
    endpoint: Option<String>,
    /// With this endpoint pattern, as it is spelled in the rule
    #[arg(long, value_name = "PATTERN")]
    pattern: Option<String>,
    /// For this tier
    #[arg(long, value_name = "TIER")]
    tier: Option<String>,
    /// For this client
    #[arg(long, value_name = "KEY")]
    client_key: Option<String>,
    /// Those that take part in decisions, or those that do not
    #[arg(long, value_name = "BOOL", value_parser = ["true", "false"])]
    enabled: Option<String>,
    /// Those of the database, of rules files, or of Envoy's files
    #[arg(long, value_name = "WHERE", value_parser = ["database", "file", "envoy"])]
    source: Option<String>,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: EveryScopeArgs,
}

const HELP: &str = r#"Every rule in force, whatever its source. Rules of all namespaces are listed, unless
--namespace names one. SOURCE says where a rule is: in the database, or in which
line of which file.

Examples:
  tollgate rules list
  tollgate rules list --tier free --endpoint "POST /api/orders"
  Every rule that is switched off, for a script:
    tollgate rules list --enabled false --all --json | jq -r '.rules[].rule_id'

Exit codes:
  0  listed, even if there is nothing
  2  wrong usage, no answer, no valid token"#;

/// Prints them.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "rules"]);
    let call = call.query_some("endpoint", args.endpoint.as_deref()).query_some("tier", args.tier.as_deref());
    let call = call.query_some("pattern", args.pattern.as_deref());
    let call = call.query_some("client_key", args.client_key.as_deref());
    let call = call.query_some("enabled", args.enabled.as_deref()).query_some("source", args.source.as_deref());
    let empty = "no such rules; to make one: tollgate rules create --help";
    let cells = |rule: &Value| {
        let (id, source, version) = (member(rule, "rule_id"), source_words(rule), member(rule, "version"));
        [id, limit_words(rule), key_words(rule), match_words(rule), mode_words(rule), source, version]
    };
    if args.scope.is_one() {
        return list(
            &mut admin,
            &call,
            &args.list,
            &Look { member: "rules", heading: HEADING, row: &cells, empty },
            out,
        );
    }
    let [rule, limit, key, matches, mode, source, version] = HEADING;
    let heading = ["NAMESPACE", rule, limit, key, matches, mode, source, version];
    let row = |rule: &Value| {
        let [id, limit, key, matches, mode, source, version] = cells(rule);
        [member(rule, "namespace"), id, limit, key, matches, mode, source, version]
    };
    list(&mut admin, &call, &args.list, &Look { member: "rules", heading, row: &row, empty }, out)
}

const HEADING: [&str; 7] = ["RULE", "LIMIT", "KEY BY", "APPLIES TO", "MODE", "SOURCE", "VERSION"];
