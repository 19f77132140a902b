//! `tollgate rules refresh`

use anyhow::Result;
use hyper::Method;

use crate::admin::ServerReadArgs;
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::member;

/// The server.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    read: ServerReadArgs,
}

const HELP: &str = r#"Needed only after changes with SQL. Changes by the API and by these commands reach all
nodes automatically.

Examples:
  psql limits -c "UPDATE rate_limit_rules SET enabled = false WHERE ..."
  tollgate rules refresh

Exit codes:
  0  all nodes were notified
  2  wrong usage, no response, no valid token"#;

/// Makes all nodes reload.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.read.server.admin()?;
    let call = admin.call(Method::POST, &["v1", "rules", "refresh"]);
    let response = admin.send(&call)?;
    match args.read.json {
        true => out.line(&response.text())?,
        false => out
            .line(&format!("all nodes reload the database (generation {})", member(&response.json()?, "generation")))?,
    }
    Ok(Exit::Ok)
}
