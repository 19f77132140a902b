//! `tollgate serve`: from the command line to a configuration; the server does the rest.

use anyhow::{Result, bail};
use tollgate_server::config::Config;

use crate::exit::Exit;
use crate::output::Output;
use crate::settings::SettingsArgs;

/// What to serve, where and how.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
}

const HELP: &str = r#"Every setting is also an environment variable (TOLLGATE_MAX_CONNECTIONS) and a key
of the file that --config names (max_connections: 500). Flags beat environment
beats file; `tollgate config` shows what is in effect and why.

Examples:
  Serve rules on this machine:
    tollgate serve --rules rules.yaml
  On every interface, to callers with a token:
    tollgate serve --rules rules.yaml --http 0.0.0.0:8080 --token-file tokens
  On a Unix domain socket as well:
    tollgate serve --rules rules.yaml --http 127.0.0.1:8080 \
      --http unix:/run/tollgate.sock
  As configured:
    tollgate serve --config /etc/tollgate/tollgate.yaml

Exit codes:
  0  stopped by a signal, after the requests in flight were answered
  2  wrong usage, settings that cannot be used, an address that cannot be bound"#;

/// Serves until a signal ends it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let config = args.settings.resolve(out)?.config;
    config.check_exposure()?;
    start(config)
}

/// The one line that waits for the listener: `tollgate_server::run::serve(config)`.
fn start(_config: Config) -> Result<Exit> {
    bail!("serving is not built yet")
}
