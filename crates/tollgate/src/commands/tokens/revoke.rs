//! `tollgate tokens revoke ID`

use anyhow::{Result, bail};
use hyper::Method;

use crate::admin::ServerArgs;
use crate::exit::Exit;
use crate::output::Output;

/// Which token.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Its id: what stands between `tg_` and the next `_`, as `tokens list` shows it
    #[arg(value_name = "TOKEN_ID")]
    token_id: String,
    #[command(flatten)]
    server: ServerArgs,
}

const HELP: &str = r#"Within two seconds no node takes it any more.

Examples:
  tollgate tokens revoke 7f3ac2d1

Exit codes:
  0  revoked
  1  there is no such token
  2  wrong usage, no answer, no valid token"#;

/// Revokes it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    if args.token_id.starts_with("tg_") {
        bail!("name the token by its id, not by its secret, which others see in the list of processes");
    }
    let mut admin = args.server.admin()?;
    let call = admin.call(Method::DELETE, &["v1", "tokens", &args.token_id]);
    admin.send(&call)?;
    out.line(&format!("revoked token {}", out.palette().strong(&args.token_id)))?;
    Ok(Exit::Ok)
}
