//! `tollgate rules delete ID`

use anyhow::Result;

use crate::admin::{DeleteArgs, ScopeArgs, delete};
use crate::exit::Exit;
use crate::output::Output;

/// Which rule.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Its id
    #[arg(value_name = "RULE_ID")]
    rule_id: String,
    #[command(flatten)]
    delete: DeleteArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Its overrides go with it. To keep it and leave it out of decisions:
tollgate rules update ID --disabled. What was deleted comes back with
tollgate rules rollback.

Examples:
  tollgate rules delete orders-per-user
  What would go?
    tollgate rules delete orders-per-user --dry-run

Exit codes:
  0  deleted; with --dry-run: it would be
  1  there is no such rule, or it is not that version any more
  2  wrong usage, no answer, no valid token"#;

/// Deletes it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    delete(&mut args.scope.admin()?, ("rule", &["v1", "rules", &args.rule_id]), &args.delete, out)
}
