//! `tollgate tokens revoke ID`

use anyhow::{Result, bail};
use hyper::Method;

use crate::admin::ServerArgs;
use crate::exit::Exit;
use crate::output::Output;

/// The token.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Id of the token: the part between `tg_` and the next `_`, as shown by `tokens list`
    #[arg(value_name = "TOKEN_ID")]
    token_id: String,
    #[command(flatten)]
    server: ServerArgs,
}

const HELP: &str = r#"Every node rejects the token within two seconds.

Examples:
  tollgate tokens revoke 7f3ac2d1

Exit codes:
  0  revoked
  1  no such token
  2  wrong usage, no response, no valid token"#;

/// Revokes the token.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    if args.token_id.starts_with("tg_") {
        bail!("use the id of the token, not the secret: other users see the command line in the process list");
    }
    let mut admin = args.server.admin()?;
    let call = admin.call(Method::DELETE, &["v1", "tokens", &args.token_id]);
    admin.send(&call)?;
    out.line(&format!("revoked token {}", out.palette().strong(&args.token_id)))?;
    Ok(Exit::Ok)
}
