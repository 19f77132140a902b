//! `tollgate check`: decisions in this process, on the real clock or on one that is told the time.

use std::path::PathBuf;

use anyhow::{Result, bail};
use tollgate_core::{Clock, ManualClock, SlotId, Span, Time};
use tollgate_engine::{Decision, Engine, Verdict};
use tollgate_rules::{datetime, duration};
use tollgate_server::explain::decision_json;
use tollgate_store::{Memory, MonotonicClock};

use crate::exit::Exit;
use crate::load;
use crate::output::Output;
use crate::render::{Palette, decision_text, for_people, headline};
use crate::request::{OwnedRequest, RequestArgs};

/// What to decide, under which rules, when and how often.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The rules file; - reads standard input
    #[arg(long, value_name = "FILE", env = "TOLLGATE_RULES", hide_env_values = true)]
    rules: PathBuf,
    /// Print JSON: one object, with --repeat one per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    request: RequestArgs,
    /// Decide at this time instead of now: RFC 3339, or seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Time")]
    at: Option<Time>,
    /// Decide the same request so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000_000), help_heading = "Time")]
    repeat: u64,
    /// Let this much time pass between two decisions, without waiting for it
    #[arg(long, value_name = "DURATION", value_parser = span, help_heading = "Time")]
    every: Option<Span>,
}

const HELP: &str = r#"Every run starts with empty buckets: usage lasts as long as the command.

Examples:
  May this request pass?
    tollgate check --rules rules.yaml --api-key abc --tier free \
      --endpoint "POST /api/orders"
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
  2  wrong usage, rules that cannot be read, or a request that cannot"#;

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
    let loaded = load::rules(&args.rules)?;
    let request = args.request.over(OwnedRequest::default());
    let custom = request.custom();
    let clock = args.clock();
    let engine = match &clock {
        Some(clock) => Engine::on_clock(loaded.set, clock.clone()),
        None => Engine::in_memory(loaded.set),
    };
    let mut tally = Tally::default();
    for number in 1..=args.repeat {
        if number > 1
            && let Some((clock, every)) = clock.as_ref().zip(args.every)
        {
            clock.advance(every);
        }
        let slot = request.in_flight.then_some(SlotId(u128::from(number)));
        let decision = decide(&engine, &request.ask(&loaded.file.namespace, &custom, slot))?;
        tally.count(&decision);
        if out.is_closed() {
            continue;
        }
        match (args.json, args.repeat) {
            (true, 1) => out.json(&decision_json(&decision))?,
            (true, _) => out.json_line(&decision_json(&decision))?,
            (false, 1) => out.text(&decision_text(&decision, out.palette()))?,
            (false, _) => out.line(&tally.line(&decision, out.palette()))?,
        }
    }
    if request.peek && !args.json {
        out.line("only asked: nothing was charged")?;
    }
    if args.repeat > 1 && !args.json {
        out.line(&format!("\n{} requests: {} allowed, {} denied", args.repeat, tally.allowed, tally.denied))?;
    }
    Ok(Exit::from_success(tally.denied == 0))
}

/// A decision; a request that cannot be read is no decision but a mistake on the command line.
pub fn decide(engine: &Engine<Memory>, request: &tollgate_core::Request<'_>) -> Result<Decision> {
    let decision = engine.decide_now(request);
    match &decision.verdict {
        Verdict::Invalid(error) => bail!("the request cannot be read: {error}"),
        _ => Ok(decision),
    }
}

impl Args {
    /// A clock that stands still, if time is told rather than taken.
    fn clock(&self) -> Option<ManualClock> {
        match (self.at, self.every) {
            (None, None) => None,
            (Some(at), _) => Some(ManualClock::at(at)),
            (None, Some(_)) => Some(ManualClock::at(MonotonicClock::new().now())),
        }
    }
}

#[derive(Default)]
struct Tally {
    allowed: u64,
    denied: u64,
    first: Option<Time>,
}

impl Tally {
    fn count(&mut self, decision: &Decision) {
        self.first.get_or_insert(decision.now);
        match decision.is_allowed() {
            true => self.allowed += 1,
            false => self.denied += 1,
        }
    }

    fn line(&self, decision: &Decision, palette: Palette) -> String {
        let since = decision.now.since(self.first.unwrap_or(decision.now));
        let when = format!("{:>5}  +{:<8}", self.allowed + self.denied, for_people(since));
        format!("{}  {}", palette.faint(&when), headline(decision, palette))
    }
}
