//! `tollgate rules refresh`

use anyhow::Result;
use hyper::Method;

use crate::admin::ServerReadArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::render::member;

/// Of which server.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    read: ServerReadArgs,
}

const HELP: &str = r#"For whoever changed the tables with SQL. Changes by the API and by these commands
reach all nodes by themselves.

Examples:
  psql limits -c "UPDATE rate_limit_rules SET enabled = false WHERE ..."
  tollgate rules refresh

Exit codes:
  0  all nodes were told
  2  wrong usage, no answer, no valid token"#;

/// Asks for it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.read.server.admin()?;
    let call = admin.call(Method::POST, &["v1", "rules", "refresh"]);
    let response = admin.send(&call)?;
    match args.read.json {
        true => out.line(&response.text())?,
        false => out.line(&format!(
            "all nodes read everything anew (generation {})",
            member(&response.json()?, "generation")
        ))?,
    }
    Ok(Exit::Ok)
}
