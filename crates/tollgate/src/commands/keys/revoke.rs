//! `tollgate keys revoke ID`

use anyhow::Result;
use hyper::Method;

use super::check_id;
use crate::admin::ScopeArgs;
use crate::exit::Exit;
use crate::output::Output;

/// The key.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Id of the key: the part between `tk_` and the next `_`, as shown by `keys list`
    #[arg(value_name = "KEY_ID")]
    key_id: String,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Every gateway refuses the key within two seconds.

Examples:
  tollgate keys revoke 7f3ac2d1

Exit codes:
  0  revoked
  1  no such key
  2  wrong usage, no response, no valid token"#;

/// Revokes the key.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    check_id(&args.key_id)?;
    let mut admin = args.scope.admin()?;
    let call = admin.call(Method::DELETE, &["v1", "keys", &args.key_id]);
    admin.send(&call)?;
    out.line(&format!("revoked key {}", out.palette().strong(&args.key_id)))?;
    Ok(Exit::Ok)
}
