//! Decisions of a server, by its clock.

use std::time::Duration;

use anyhow::{Result, bail};
use tollgate_core::{Clock, Time};
use tollgate_store::MonotonicClock;

use super::args::Args;
use super::decision_counts::DecisionCounts;
use crate::decider::RemoteServer;
use crate::output::Output;
use crate::request::OwnedRequest;
use tollgate_terminal::DecisionView;

pub(super) fn run(
    args: &Args,
    server: &RemoteServer,
    request: &OwnedRequest,
    out: &mut Output,
) -> Result<DecisionCounts> {
    if args.at.is_some() {
        bail!("--at needs --rules: a server decides by its own clock");
    }
    let body = request.to_json()?.to_string();
    let mut client = server.client()?;
    let clock = MonotonicClock::new();
    let mut counts = DecisionCounts::default();
    for number in 1..=args.repeat {
        if number > 1
            && let Some(every) = args.every
        {
            out.flush()?; // the reader of a pipe should not wait
            client.wait(Duration::from_nanos(every.nanos()));
        }
        let response = client.post(&["v1", "check"], body.clone())?;
        let shown = DecisionView::from(&response.object("allowed")?);
        counts.count(shown.is_allowed());
        match (args.json, args.repeat) {
            (true, _) => out.line(&response.text())?,
            (false, 1) => out.text(&shown.text(out.palette()))?,
            (false, _) => out.line(&counts.line(&shown, to_millis(clock.now()), out.palette()))?,
        }
    }
    Ok(counts)
}

/// Rounded to milliseconds: finer times would show network latency.
fn to_millis(time: Time) -> Time {
    Time::from_nanos(time.nanos() / 1_000_000 * 1_000_000)
}
