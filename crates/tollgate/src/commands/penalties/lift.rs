//! `tollgate penalties lift ID`

use anyhow::Result;
use hyper::Method;

use crate::admin::ScopeArgs;
use crate::exit::Exit;
use crate::output::Output;

/// The penalty.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Id of the penalty, as shown by `penalties list`
    #[arg(value_name = "PENALTY_ID")]
    penalty_id: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"The client may ask again at once, and its next penalty is its first again.

Examples:
  tollgate penalties lift 3f0c6a1b5d7e9f2a4c6e8b0d1f3a5c7e

Exit codes:
  0  lifted
  1  no such penalty, or it has ended
  2  wrong usage, no response, no valid token"#;

/// Lifts the penalty.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.call(Method::DELETE, &["v1", "penalties", &args.penalty_id]);
    admin.send(&call)?;
    out.line(&format!("lifted penalty {}", out.palette().strong(&args.penalty_id)))?;
    Ok(Exit::Ok)
}
