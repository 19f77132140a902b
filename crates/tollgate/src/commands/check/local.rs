//! Decisions in this process, on the real clock or on a manual one.

use std::path::Path;

use anyhow::{Result, bail};
use tollgate_core::{Clock, ManualClock, SlotId};
use tollgate_engine::{Decision, Engine, Verdict};
use tollgate_service::explain::decision_json;
use tollgate_store::{Memory, MonotonicClock};

use super::args::Args;
use super::decision_counts::DecisionCounts;
use crate::load;
use crate::output::Output;
use crate::request::OwnedRequest;
use tollgate_terminal::DecisionView;

pub(super) fn run(args: &Args, file: &Path, request: &OwnedRequest, out: &mut Output) -> Result<DecisionCounts> {
    let loaded = load::rules(file)?;
    let lists = request.lists();
    let clock = clock(args);
    let engine = match &clock {
        Some(clock) => Engine::on_clock(loaded.set, clock.clone()),
        None => Engine::in_memory(loaded.set),
    };
    let mut counts = DecisionCounts::default();
    for number in 1..=args.repeat {
        if number > 1
            && let Some((clock, every)) = clock.as_ref().zip(args.every)
        {
            clock.advance(every);
        }
        let slot = request.in_flight.then_some(SlotId(u128::from(number)));
        let decision = decide(&engine, &request.to_request(&loaded.file.namespace, &lists, slot))?;
        counts.count(decision.is_allowed());
        if out.is_closed() {
            continue;
        }
        match (args.json, args.repeat) {
            (true, 1) => out.json(&decision_json(&decision))?,
            (true, _) => out.json_line(&decision_json(&decision))?,
            (false, 1) => out.text(&DecisionView::from(&decision).text(out.palette()))?,
            (false, _) => out.line(&counts.line(&DecisionView::from(&decision), decision.now, out.palette()))?,
        }
    }
    Ok(counts)
}

/// Decides a request; an invalid request is an error of the command line.
pub fn decide(engine: &Engine<Memory>, request: &tollgate_core::Request<'_>) -> Result<Decision> {
    let decision = engine.decide_now(request);
    match &decision.verdict {
        Verdict::Invalid(error) => bail!("the request cannot be read: {error}"),
        _ => Ok(decision),
    }
}

/// A manual clock, if --at or --every is given.
fn clock(args: &Args) -> Option<ManualClock> {
    match (args.at, args.every) {
        (None, None) => None,
        (Some(at), _) => Some(ManualClock::at(at)),
        (None, Some(_)) => Some(ManualClock::at(MonotonicClock::new().now())),
    }
}
