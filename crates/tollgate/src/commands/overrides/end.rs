//! `tollgate overrides end ID`

use anyhow::Result;
use hyper::Method;

use crate::admin::ScopeReadArgs;
use crate::exit::Exit;
use crate::output::Output;

/// Which override.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Its id
    #[arg(value_name = "OVERRIDE_ID")]
    override_id: String,
    #[command(flatten)]
    read: ScopeReadArgs,
}

const HELP: &str = r#"It holds until now and not any longer. It stays in the list, with its reason; to
remove it altogether: tollgate overrides delete.

Examples:
  tollgate overrides end ov-7f3a

Exit codes:
  0  ended
  1  there is no such override
  2  wrong usage, no answer, no valid token"#;

/// Ends it.
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
