//! `tollgate rules export [FILE]`

use std::path::PathBuf;

use anyhow::Result;

use crate::admin::ScopeArgs;
use crate::exit::Exit;
use crate::input;
use crate::output::Output;
use crate::replace::replace;
use tollgate_terminal::visible;

/// Where to write.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Write to this file [default: -, standard output]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Writes the rules, clients, overrides and grants of a namespace as a rules file, which
`tollgate serve --rules`, `rules lint`, `rules test` and `rules import` read. A new
file has mode 0600, because client keys may be secrets.

Examples:
  tollgate rules export > rules.yaml
  Every night, into git:
    tollgate rules export rules.yaml && git commit -am "rules of $(date -I)"

Exit codes:
  0  exported
  2  wrong usage, no response, no valid token, a file that cannot be written"#;

/// Prints or writes the rules file.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "rules", "export"]);
    let response = admin.send_long(&call, "exporting", out)?;
    match args.file.as_deref().filter(|path| !input::is_stdin(path)) {
        None => out.bytes(&response.body)?,
        Some(path) => {
            replace(path, &response.body)?;
            out.line(&format!("wrote {}", visible(&path.to_string_lossy())))?;
        }
    }
    Ok(Exit::Ok)
}
