//! `tollgate rules list`

use anyhow::Result;

use crate::admin::{EveryScopeArgs, ListArgs, ListTable};
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::{key_words, limit_words, match_words, mode_words, source_words};

/// Filters.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Only rules that apply to this path: /api/orders, or "POST /api/orders"
    #[arg(long, value_name = "PATH")]
    endpoint: Option<String>,
    /// Only rules with this endpoint pattern, spelled as in the rule
    #[arg(long, value_name = "PATTERN")]
    pattern: Option<String>,
    /// Only rules for this tier
    #[arg(long, value_name = "TIER")]
    tier: Option<String>,
    /// Only rules for this client
    #[arg(long, value_name = "KEY")]
    client_key: Option<String>,
    /// Only enabled, or only disabled rules
    #[arg(long, value_name = "BOOL", value_parser = ["true", "false"])]
    enabled: Option<String>,
    /// Only rules of the database, of rules files, or of Envoy's files
    #[arg(long, value_name = "WHERE", value_parser = ["database", "file", "envoy"])]
    source: Option<String>,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: EveryScopeArgs,
}

const HELP: &str = r#"Lists the active rules of all sources, of all namespaces unless --namespace names one.
SOURCE is the location of a rule: the database, or file and line.

Examples:
  tollgate rules list
  tollgate rules list --tier free --endpoint "POST /api/orders"
  All disabled rules, for a script:
    tollgate rules list --enabled false --all --json | jq -r '.rules[].rule_id'

Exit codes:
  0  listed, even if there are none
  2  wrong usage, no response, no valid token"#;

/// Prints the rules.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "rules"]).query_each([
        ("endpoint", args.endpoint.as_deref()),
        ("tier", args.tier.as_deref()),
        ("pattern", args.pattern.as_deref()),
        ("client_key", args.client_key.as_deref()),
        ("enabled", args.enabled.as_deref()),
        ("source", args.source.as_deref()),
    ]);
    ListTable::new("rules", "no such rules; to create one: tollgate rules create --help")
        .namespace_if(!args.scope.is_one())
        .field("RULE", "rule_id")
        .column("LIMIT", limit_words)
        .column("KEY BY", key_words)
        .column("APPLIES TO", match_words)
        .column("MODE", mode_words)
        .column("SOURCE", source_words)
        .field("VERSION", "version")
        .print_pages(&mut admin, &call, &args.list, out)
}
