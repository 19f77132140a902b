//! The flags and the help of `tollgate check`.

use tollgate_core::{Span, Time};

use crate::decider::DeciderArgs;
use crate::request::RequestArgs;
use crate::when;

/// What to decide, by whom, when and how often.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    pub(super) decider: DeciderArgs,
    /// Print JSON, as the HTTP interface answers: one object, with --repeat one per line
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) request: RequestArgs,
    /// Decide at this time instead of now: RFC 3339, or seconds since 1970; not with --url
    #[arg(long, value_name = "TIME", value_parser = when::instant_or_seconds, help_heading = "Time")]
    pub(super) at: Option<Time>,
    /// Decide the same request so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000_000), help_heading = "Time")]
    pub(super) repeat: u64,
    /// Let this much time pass between two decisions: at once with --rules, really with --url
    #[arg(long, value_name = "DURATION", value_parser = when::span, help_heading = "Time")]
    pub(super) every: Option<Span>,
}

const HELP: &str = r#"With --rules every run starts with empty buckets: usage lasts as long as the
command. With --url the server decides, and what passes is charged there.

Examples:
  May this request pass?
    tollgate check --rules rules.yaml --api-key abc --tier free \
      --endpoint "POST /api/orders"
  What does the server say? (--peek only asks)
    tollgate check --url http://127.0.0.1:8080 --client-key user:42 \
      --endpoint /api/orders --tier free --peek
  How many of 25 at once?
    tollgate check --rules rules.yaml --api-key abc --tier free \
      --endpoint "POST /api/orders" --repeat 25
  Twenty a second for a minute, in no time:
    tollgate check --rules rules.yaml --client-key user:42 \
      --repeat 1200 --every 50ms
  At a certain time, for a script:
    tollgate check --rules rules.yaml --ip 192.0.2.1 --json \
      --at 2026-01-01T00:00:00Z

Exit codes:
  0  allowed (all of them)
  1  denied (at least one of them)
  2  wrong usage, rules or a request that cannot be read, a server that does not
     answer"#;
