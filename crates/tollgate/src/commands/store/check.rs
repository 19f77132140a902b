//! `tollgate store check URL`: what `tollgate serve` would find out about a store, before anything depends on it.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use tollgate_server::backend::redis_config;
use tollgate_server::config::{StorePlace, StoreSettings};
use tollgate_store_redis::Finding;
use tollgate_store_redis::check::Level;

use crate::exit::Exit;
use crate::output::Output;
use crate::render::{Palette, visible};

/// Which store, and how it is spoken to.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The store, as --store of `tollgate serve` takes it
    #[arg(value_name = "URL", env = "TOLLGATE_STORE", hide_env_values = true)]
    url: String,
    /// The password of the store, so that its URL needs none
    #[arg(long, value_name = "FILE", env = "TOLLGATE_STORE_PASSWORD_FILE", hide_env_values = true)]
    store_password_file: Option<PathBuf>,
    /// Trust the authorities in this file (PEM) instead of this machine's
    #[arg(long, value_name = "FILE", env = "TOLLGATE_STORE_CA", hide_env_values = true)]
    store_ca: Option<PathBuf>,
    /// Show this certificate (PEM) to a store that wants one
    #[arg(long, value_name = "FILE", env = "TOLLGATE_STORE_CERT", hide_env_values = true, requires = "store_key")]
    store_cert: Option<PathBuf>,
    /// The private key of --store-cert (PEM)
    #[arg(long, value_name = "FILE", env = "TOLLGATE_STORE_KEY", hide_env_values = true, requires = "store_cert")]
    store_key: Option<PathBuf>,
    /// Do not compare names in certificates with hosts; who signed them is still checked
    #[arg(long)]
    store_skip_hostname: bool,
    /// Take any certificate; for tests
    #[arg(long)]
    store_insecure_tls: bool,
    /// Count a store that evicts buckets when it is full as a problem, not only as worth a warning
    #[arg(long)]
    require_noeviction: bool,
    /// Print JSON: a list of findings with level, what and help
    #[arg(long)]
    json: bool,
}

const HELP: &str = r#"Connects as `tollgate serve` would, and looks at everything that it depends on:
version, role, eviction, scripts and the rights to run them, the clock, the round
trip. Writes one key that lives for a moment.

Examples:
  One server:
    tollgate store check redis://127.0.0.1:6379
  With a user of its own, over TLS:
    tollgate store check rediss://tollgate@redis.internal:6380 \
      --store-password-file /etc/tollgate/store-password
  A primary behind Sentinels; some nodes of a cluster:
    tollgate store check redis-sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster
    tollgate store check redis-cluster://10.0.0.1:6379,10.0.0.2:6379

Exit codes:
  0  it can be used; warnings are worth reading
  1  there are problems: `tollgate serve` would refuse it, or not reach it
  2  wrong usage"#;

/// Prints what was found.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let place: StorePlace = args.url.parse().map_err(|fault| anyhow!("URL: {fault}"))?;
    let StorePlace::Shared(url) = place else {
        bail!("a store in memory needs no check: name a URL, redis://HOST:PORT")
    };
    let settings = StoreSettings {
        password_file: args.store_password_file.clone(),
        ca: args.store_ca.clone(),
        cert: args.store_cert.clone(),
        key: args.store_key.clone(),
        skip_hostname: args.store_skip_hostname,
        insecure_tls: args.store_insecure_tls,
        require_noeviction: args.require_noeviction,
        ..StoreSettings::default()
    };
    let config = redis_config(&url, &settings, "tollgate-store-check".to_owned())?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    let findings = runtime.block_on(tollgate_store_redis::check(&config));
    let fine = findings.iter().all(|finding| finding.level != Level::Problem);
    match args.json {
        true => out.json(&findings.iter().map(as_json).collect())?,
        false => {
            out.line(&format!("{url}"))?;
            for finding in &findings {
                out.text(&text(finding, out.palette()))?;
            }
            out.line(if fine { "\nit can be used" } else { "\nit cannot be used as it is" })?;
        }
    }
    Ok(Exit::from_success(fine))
}

fn text(finding: &Finding, palette: Palette) -> String {
    let Finding { level, what, help } = finding;
    let word = match level {
        Level::Ok => palette.good("ok      "),
        Level::Warning => palette.warn("warning "),
        Level::Problem => palette.bad("problem "),
    };
    let mut text = format!("  {word}{}\n", visible(what));
    if !help.is_empty() {
        text.push_str(&format!("          {}\n", palette.faint(&visible(help))));
    }
    text
}

fn as_json(finding: &Finding) -> Value {
    let Finding { level, what, help } = finding;
    let level = match level {
        Level::Ok => "ok",
        Level::Warning => "warning",
        Level::Problem => "problem",
    };
    json!({ "level": level, "what": what, "help": help })
}
