//! `tollgate rules list`

use anyhow::Result;

use crate::admin::{EveryScopeArgs, ListArgs, ListTable};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{key_words, limit_words, match_words, mode_words, source_words};

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
    let call = admin.get(&["v1", "rules"]).query_each([
        ("endpoint", args.endpoint.as_deref()),
        ("tier", args.tier.as_deref()),
        ("pattern", args.pattern.as_deref()),
        ("client_key", args.client_key.as_deref()),
        ("enabled", args.enabled.as_deref()),
        ("source", args.source.as_deref()),
    ]);
    ListTable::new("rules", "no such rules; to make one: tollgate rules create --help")
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
