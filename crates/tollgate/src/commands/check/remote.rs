//! Decisions of a server, at its pace and by its clock.

use std::time::Duration;

use anyhow::{Result, bail};
use tollgate_core::{Clock, Time};
use tollgate_store::MonotonicClock;

use super::args::Args;
use super::tally::Tally;
use crate::judge::Server;
use crate::output::Output;
use crate::render::Shown;
use crate::request::OwnedRequest;

pub(super) fn run(args: &Args, server: &Server, request: &OwnedRequest, out: &mut Output) -> Result<Tally> {
    if args.at.is_some() {
        bail!("--at needs --rules: a server decides by its own clock");
    }
    let body = request.to_json()?.to_string();
    let mut client = server.client()?;
    let clock = MonotonicClock::new();
    let mut tally = Tally::default();
    for number in 1..=args.repeat {
        if number > 1
            && let Some(every) = args.every
        {
            out.flush()?; // whoever reads along should not wait with us
            client.wait(Duration::from_nanos(every.nanos()));
        }
        let answer = client.post(&["v1", "check"], body.clone())?;
        let shown = Shown::from(&answer.object("allowed")?);
        tally.count(shown.is_allowed());
        match (args.json, args.repeat) {
            (true, _) => out.line(&answer.text())?,
            (false, 1) => out.text(&shown.text(out.palette()))?,
            (false, _) => out.line(&tally.line(&shown, to_millis(clock.now()), out.palette()))?,
        }
    }
    Ok(tally)
}

/// Finer than that, it would be about the network.
fn to_millis(time: Time) -> Time {
    Time::from_nanos(time.nanos() / 1_000_000 * 1_000_000)
}
