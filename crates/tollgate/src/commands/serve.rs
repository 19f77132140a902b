//! `tollgate serve`: resolves the configuration, and runs the server.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use anyhow::Result;
use tollgate_config::{Config, LogFormat, LogLevel};
use tollgate_store::MonotonicClock;
use tollgate_telemetry::{Colours, Format, Lines, LogConfig, Sink};
use tracing::Level;

use crate::exit::Exit;
use crate::output::Output;
use crate::settings::SettingsArgs;

/// The settings.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
}

const HELP: &str = r#"Every setting is also an environment variable (TOLLGATE_MAX_CONNECTIONS) and a key
of the file that --config names (max_connections: 500). Flags win over environment
variables, which win over the file; `tollgate config` shows the effective settings.

Examples:
  On this machine:
    tollgate serve --rules rules.yaml
  On every interface, for clients with a token:
    tollgate serve --rules rules.yaml --http 0.0.0.0:8080 --token-file tokens
  On a Unix domain socket as well:
    tollgate serve --rules rules.yaml --http 127.0.0.1:8080 \
      --http unix:/run/tollgate.sock
  As a node of a fleet that shares its limits in Redis:
    tollgate serve --rules rules.yaml --store redis://10.0.0.1:6379
  The same behind Sentinels, with the password in a file:
    tollgate serve --rules rules.yaml \
      --store redis-sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster \
      --store-password-file /etc/tollgate/store-password
  With a configuration file:
    tollgate serve --config /etc/tollgate/tollgate.yaml

Exit codes:
  0  stopped by a signal, after all requests in flight were answered
  2  wrong usage, invalid settings, an address that cannot be bound, an unusable store"#;

/// Runs the server until a signal stops it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    serve(args.settings.resolve(out)?.config, out)
}

/// Runs the server with a configuration.
pub fn serve(config: Config, out: &mut Output) -> Result<Exit> {
    let lines = Lines::start(Sink::Stderr)?;
    let log =
        LogConfig { format: format(&config), level: level(config.log_level), clock: Arc::new(MonotonicClock::new()) };
    log.install(lines.clone())?;
    tollgate_server::run::serve(config, Some(lines), |text| {
        out.text(text)?;
        Ok(out.flush()?)
    })?;
    Ok(Exit::Ok)
}

fn format(config: &Config) -> Format {
    match config.log_format {
        LogFormat::Json => Format::Json,
        LogFormat::People if io::stderr().is_terminal() => Format::People(Colours::On),
        LogFormat::People => Format::People(Colours::Off),
    }
}

fn level(level: LogLevel) -> Level {
    match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
    }
}
