//! `tollgate store check URL`: the checks of a store that `tollgate serve` makes at its start.

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use tollgate_config::{StorePlace, StoreSettings};
use tollgate_server::redis_config;
use tollgate_store_redis::Finding;
use tollgate_store_redis::check::FindingLevel;

use super::access::AccessArgs;
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::{Palette, visible};

/// The store, and how to connect to it.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// URL of the store, as in --store of `tollgate serve`
    #[arg(value_name = "URL", env = "TOLLGATE_STORE", hide_env_values = true)]
    url: String,
    #[command(flatten)]
    access: AccessArgs,
    /// Treat an eviction policy other than noeviction as a problem, not as a warning
    #[arg(long)]
    require_noeviction: bool,
    /// Print JSON: a list of findings with level, what and help
    #[arg(long)]
    json: bool,
}

const HELP: &str = r#"Connects like `tollgate serve`, and checks everything that the server depends on:
version, role, eviction, scripts and the rights to run them, the clock, the round
trip. Writes one short-lived key.

Examples:
  One server:
    tollgate store check redis://127.0.0.1:6379
  With a user, over TLS:
    tollgate store check rediss://tollgate@redis.internal:6380 \
      --store-password-file /etc/tollgate/store-password
  A primary behind Sentinels; a cluster:
    tollgate store check redis-sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster
    tollgate store check redis-cluster://10.0.0.1:6379,10.0.0.2:6379

Exit codes:
  0  usable, possibly with warnings
  1  problems: `tollgate serve` would reject the store, or not reach it
  2  wrong usage"#;

/// Prints the findings.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let place: StorePlace = args.url.parse().map_err(|fault| anyhow!("URL: {fault}"))?;
    let StorePlace::Shared(url) = place else {
        bail!("a store in memory needs no check: name a URL, redis://HOST:PORT")
    };
    let settings = StoreSettings { require_noeviction: args.require_noeviction, ..args.access.settings() };
    let config = redis_config(&url, &settings, "tollgate-store-check".to_owned())?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    let findings = runtime.block_on(tollgate_store_redis::check(&config));
    let fine = findings.iter().all(|finding| finding.level != FindingLevel::Problem);
    match args.json {
        true => out.json(&findings.iter().map(as_json).collect())?,
        false => {
            out.line(&format!("{url}"))?;
            for finding in &findings {
                out.text(&text(finding, out.palette()))?;
            }
            out.line(if fine { "\nthe store can be used" } else { "\nthe store cannot be used as it is" })?;
        }
    }
    Ok(Exit::from_success(fine))
}

fn text(finding: &Finding, palette: Palette) -> String {
    let Finding { level, what, help } = finding;
    let word = match level {
        FindingLevel::Ok => palette.good("ok      "),
        FindingLevel::Warning => palette.warn("warning "),
        FindingLevel::Problem => palette.bad("problem "),
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
        FindingLevel::Ok => "ok",
        FindingLevel::Warning => "warning",
        FindingLevel::Problem => "problem",
    };
    json!({ "level": level, "what": what, "help": help })
}
