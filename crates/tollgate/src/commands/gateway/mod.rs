//! `tollgate gateway`: the server with a gateway, and without the data API unless that is asked for.

mod check;
mod explain;

use anyhow::Result;

use super::serve;
use crate::exit::Exit;
use crate::output::Output;
use crate::settings::SettingsArgs;

/// The settings.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<GatewayCommand>,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// What can be done with routes without serving them.
#[derive(Debug, clap::Subcommand)]
enum GatewayCommand {
    /// Check routes files, and report every mistake
    Check(check::Args),
    /// Explain what the routes make of a request, without sending it
    Explain(explain::Args),
}

const HELP: &str = r#"A reverse proxy in front of an API: it knows who is asking, decides by the rules,
and forwards or answers 429. All settings of `tollgate serve` hold; two defaults differ:
listen is 127.0.0.1:8000, and http is off.

Examples:
  In front of an API on port 3000:
    tollgate gateway --upstream http://127.0.0.1:3000 --rules rules.yaml
  With hosts, paths, several servers and identities in a file:
    tollgate gateway --routes routes.yaml --rules rules.yaml
  Deciding, counting and logging only; everything is forwarded:
    tollgate gateway --upstream http://127.0.0.1:3000 --rules rules.yaml \
      --shadow --access-log -
  Checking a routes file before it is used:
    tollgate gateway check routes.yaml
  As gateway, and as service for other callers, in one process:
    tollgate gateway --upstream http://127.0.0.1:3000 --rules rules.yaml \
      --http 127.0.0.1:8080

Exit codes:
  0  stopped by a signal, after all requests in flight were answered
  2  wrong usage, invalid settings or routes, an address that cannot be bound"#;

/// Runs the server until a signal stops it, or a command on routes.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    match &args.command {
        Some(GatewayCommand::Check(args)) => return check::run(args, out),
        Some(GatewayCommand::Explain(args)) => return explain::run(args, out),
        None => {}
    }
    let defaults = [("listen", "127.0.0.1:8000"), ("http", "off")];
    serve::serve(args.settings.resolve_with_defaults(&defaults, out)?.config, out)
}
