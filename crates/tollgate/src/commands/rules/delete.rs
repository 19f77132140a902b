//! `tollgate rules delete ID`

use anyhow::Result;

use crate::admin::{DeleteArgs, ScopeArgs, delete};
use crate::exit::Exit;
use crate::output::Output;

/// The rule.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Id of the rule
    #[arg(value_name = "RULE_ID")]
    rule_id: String,
    #[command(flatten)]
    delete: DeleteArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Deletes the overrides of the rule as well. To disable a rule instead:
tollgate rules update ID --disabled. To restore a deleted rule:
tollgate rules rollback.

Examples:
  tollgate rules delete orders-per-user
  Show what would be deleted:
    tollgate rules delete orders-per-user --dry-run

Exit codes:
  0  deleted; with --dry-run: it exists
  1  no such rule, or it has another version
  2  wrong usage, no response, no valid token"#;

/// Deletes the rule.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    delete(&mut args.scope.admin()?, ("rule", &["v1", "rules", &args.rule_id]), &args.delete, out)
}
