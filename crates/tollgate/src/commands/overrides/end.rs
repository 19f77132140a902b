//! `tollgate overrides end ID`

use anyhow::Result;
use hyper::Method;

use crate::admin::ScopeReadArgs;
use crate::exit::Exit;
use crate::output::Output;

/// The override.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Id of the override
    #[arg(value_name = "OVERRIDE_ID")]
    override_id: String,
    #[command(flatten)]
    read: ScopeReadArgs,
}

const HELP: &str = r#"Sets the end of the override to now. It stays in the list, with its reason; to remove
it: tollgate overrides delete.

Examples:
  tollgate overrides end ov-7f3a

Exit codes:
  0  ended
  1  no such override
  2  wrong usage, no response, no valid token"#;

/// Ends the override.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.read.scope.admin()?;
    let call = admin.call(Method::POST, &["v1", "overrides", &args.override_id, "end"]);
    let response = admin.send(&call)?;
    match args.read.json {
        true => out.line(&response.text())?,
        false => out.line(&format!("override {} has ended", out.palette().strong(&args.override_id)))?,
    }
    Ok(Exit::Ok)
}
