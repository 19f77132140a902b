//! The flags and the help of `tollgate check`.

use tollgate_core::{Span, Time};

use crate::decider::DeciderArgs;
use crate::request::RequestArgs;
use crate::when;

/// The decider, the request, and its times.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    pub(super) decider: DeciderArgs,
    /// Print JSON in the format of the HTTP API: one object, with --repeat one per line
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) request: RequestArgs,
    /// Decide at this time instead of now: RFC 3339, or seconds since 1970; not with --url
    #[arg(long, value_name = "TIME", value_parser = when::instant_or_seconds, help_heading = "Time")]
    pub(super) at: Option<Time>,
    /// Decide the same request N times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000_000), help_heading = "Time")]
    pub(super) repeat: u64,
    /// Time between two decisions: simulated with --rules, real with --url
    #[arg(long, value_name = "DURATION", value_parser = when::span, help_heading = "Time")]
    pub(super) every: Option<Span>,
}

const HELP: &str = r#"With --rules every run starts with empty buckets, which last as long as the command.
With --url the server decides and charges.

Examples:
  Decide a request by a rules file:
    tollgate check --rules rules.yaml --api-key abc --tier free \
      --endpoint "POST /api/orders"
  Ask a server, without charging:
    tollgate check --url http://127.0.0.1:8080 --client-key user:42 \
      --endpoint /api/orders --tier free --peek
  Decide 25 requests at once:
    tollgate check --rules rules.yaml --api-key abc --tier free \
      --endpoint "POST /api/orders" --repeat 25
  Simulate 20 requests per second for a minute:
    tollgate check --rules rules.yaml --client-key user:42 \
      --repeat 1200 --every 50ms
  At a given time, for a script:
    tollgate check --rules rules.yaml --ip 192.0.2.1 --json \
      --at 2026-01-01T00:00:00Z

Exit codes:
  0  allowed (all of them)
  1  denied (at least one of them)
  2  wrong usage, unreadable rules or request, no response from the server"#;
