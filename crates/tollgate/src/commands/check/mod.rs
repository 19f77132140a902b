//! `tollgate check`: decisions, by a rules file in this process or by a server that runs.

mod local;
mod remote;

pub use local::decide;

use anyhow::Result;
use tollgate_core::{Span, Time};
use tollgate_rules::{datetime, duration};

use crate::exit::Exit;
use crate::judge::{Judge, JudgeArgs};
use crate::output::Output;
use crate::render::{Palette, Shown, for_people};
use crate::request::{OwnedRequest, RequestArgs};

/// What to decide, by whom, when and how often.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    judge: JudgeArgs,
    /// Print JSON, as the HTTP interface answers: one object, with --repeat one per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    request: RequestArgs,
    /// Decide at this time instead of now: RFC 3339, or seconds since 1970; not with --url
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Time")]
    at: Option<Time>,
    /// Decide the same request so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000_000), help_heading = "Time")]
    repeat: u64,
    /// Let this much time pass between two decisions: at once with --rules, really with --url
    #[arg(long, value_name = "DURATION", value_parser = span, help_heading = "Time")]
    every: Option<Span>,
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

/// A point in time: RFC 3339, or whole seconds since 1970.
pub fn time(text: &str) -> Result<Time, String> {
    match text.parse() {
        Ok(seconds) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Time::from_secs(seconds)),
        _ => datetime::parse(text).map(Time::from_nanos).map_err(|fault| fault.to_string()),
    }
}

fn span(text: &str) -> Result<Span, String> {
    duration::parse(text).map(Span::from_nanos).map_err(|fault| fault.to_string())
}

/// Decides and prints.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let request = args.request.over(OwnedRequest::default());
    let tally = match &args.judge.judge()? {
        Judge::Rules(file) => local::run(args, file, &request, out)?,
        Judge::Server(server) => remote::run(args, server, &request, out)?,
    };
    if request.peek && !args.json {
        out.line("only asked: nothing was charged")?;
    }
    if args.repeat > 1 && !args.json {
        out.line(&format!("\n{} requests: {} allowed, {} denied", args.repeat, tally.allowed, tally.denied))?;
    }
    Ok(Exit::from_success(tally.denied == 0))
}

/// What was decided so far.
#[derive(Default)]
struct Tally {
    allowed: u64,
    denied: u64,
    first: Option<Time>,
}

impl Tally {
    fn count(&mut self, is_allowed: bool) {
        match is_allowed {
            true => self.allowed += 1,
            false => self.denied += 1,
        }
    }

    /// One decision of many, in one line.
    fn line(&mut self, shown: &Shown, now: Time, palette: Palette) -> String {
        let since = now.since(*self.first.get_or_insert(now));
        let when = format!("{:>5}  +{:<8}", self.allowed + self.denied, for_people(since));
        format!("{}  {}", palette.faint(&when), shown.headline(palette))
    }
}
