//! `tollgate ready`: the health check of images that contain nothing but this program.

use std::time::Duration;

use anyhow::{Result, anyhow};
use hyper::Method;

use crate::client::{ApiCall, ApiClient, TlsTrust};
use crate::exit::Exit;
use crate::output::Output;

/// Longer than a busy server needs, shorter than the interval of a health check.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The server.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A data, admin or metrics listener of a server: http://HOST:PORT, https://HOST:PORT, unix:/path
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Ask whether the process serves at all (`/live`), not whether it takes new requests (`/ready`)
    #[arg(long)]
    live: bool,
    /// Trust the authorities in this file (PEM) instead of this machine's
    #[arg(long, value_name = "FILE")]
    ca: Option<std::path::PathBuf>,
}

const HELP: &str = r#"Asks a server whether it is ready, for health checks of containers without curl.
No token is needed. A server that drains is not ready; one whose store is away is.

Examples:
  tollgate ready
  tollgate ready --live --url http://127.0.0.1:9090

Exit codes:
  0  ready
  1  not ready: the server drains
  2  wrong usage, no response"#;

/// Asks, and prints the response of the server.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let target = args.url.parse().map_err(|fault| anyhow!("--url: {fault}"))?;
    let trust = TlsTrust { ca: args.ca.clone(), identity: None };
    let mut client = ApiClient::new(target, None, &trust)?;
    let path = if args.live { "live" } else { "ready" };
    let response = client.send(&ApiCall::new(Method::GET, &[path]).timeout(TIMEOUT))?;
    out.line(response.text().trim_end())?;
    Ok(Exit::from_success(response.status.is_success()))
}
