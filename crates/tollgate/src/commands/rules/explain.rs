//! `tollgate rules explain`: `tollgate explain` for a rules file.

use std::path::PathBuf;

use anyhow::Result;

use crate::commands::explain::{ExplainArgs, by_rules};
use crate::exit::Exit;
use crate::output::Output;

/// The rules, and the request.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The rules file; - reads standard input
    #[arg(long, value_name = "FILE", env = "TOLLGATE_RULES", hide_env_values = true)]
    rules: PathBuf,
    #[command(flatten)]
    question: ExplainArgs,
}

const HELP: &str = r#"Shows for every rule whether it applies or which condition fails, its key and
bucket, its limit with all defaults, the state of the bucket and the outcome; then
the decision. Without a request, prints the effective values of every rule. To ask
a running server: tollgate explain --url URL.

Examples:
  tollgate rules explain --rules rules.yaml
  tollgate rules explain --rules rules.yaml --api-key abc --tier free
  tollgate rules explain --rules rules.yaml \
    '{"client_key":"user:42","endpoint":"POST /api/x","cost":1}'
  After 20 requests:
    tollgate rules explain --rules rules.yaml --api-key abc --after 20

Exit codes:
  0  explained, whether allowed or denied
  2  wrong usage, unreadable rules or request"#;

/// Explains a request, or the rules without one.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    by_rules(&args.rules, &args.question, out)
}
