//! Nodes that decide locally: how often they call Redis, what they strand, and by how much they admit too much.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::fleet::FleetNodes;
use super::history::AdmissionLog;
use super::keys::{Draw, Zipf};
use super::round::StoreTimes;
use super::server::Redis;
use super::tollgate::LEASE_TTL;
use crate::process;
use crate::report::{BenchReport, Bound};

/// Users of the mixed load, how unequal they are, and what each may.
const USERS: usize = 10_000;
const EXPONENT: f64 = 1.0;
const CALLERS: u64 = 64;

/// What the mixed load cost, for the sizing table.
#[derive(Clone, Copy, Debug)]
pub struct Mixed {
    pub commands: f64,
    /// CPU microseconds per check, of this process and of Redis.
    pub own: f64,
    pub redis: f64,
    pub bytes: f64,
}

/// One bucket that many nodes share.
struct Case {
    name: &'static str,
    consistency: &'static str,
    nodes: u64,
    /// The limit, and its burst.
    per_second: f64,
    /// Offered load, as a multiple of the limit.
    offered: f64,
}

const HOT: Case =
    Case { name: "leased, 4 nodes, 10,000/s", consistency: "leased", nodes: 4, per_second: 10_000.0, offered: 1.5 };
const TEN: Case =
    Case { name: "leased, 10 nodes, 1,000/s", consistency: "leased", nodes: 10, per_second: 1_000.0, offered: 2.0 };
const BEHIND: Case =
    Case { name: "async, 10 nodes, 1,000/s", consistency: "async", nodes: 10, per_second: 1_000.0, offered: 2.0 };

/// The result of a case.
struct Seen {
    history: AdmissionLog,
    commands: u64,
    /// Parts of the limit that were not admitted once the burst was spent, though they were asked for.
    stranded: f64,
    /// Units beyond burst and rate, in the worst stretch of time.
    excess: f64,
}

impl Case {
    fn rules(&self) -> String {
        format!(
            "rules:\n  - {{ name: hot, key_by: user_id, consistency: {}, limit: {{ requests: {}, window: 1s, burst: {} }} }}\n",
            self.consistency, self.per_second, self.per_second
        )
    }

    fn run(&self, redis: &Redis, runtime: &Runtime, time: Duration) -> anyhow::Result<Seen> {
        redis.flush();
        let nodes = FleetNodes::start(redis, runtime, self.nodes, &self.rules())?;
        let before = redis.figures();
        let history = nodes.ask(runtime, self.per_second * self.offered, time, || 0)?;
        let commands = redis.figures().since(&before).calls;
        // Twice the burst's worth of time, and it is spent.
        let burst_spent = 2e9 / (self.offered - 1.0).max(1.0);
        let (from, to) = (burst_spent as u64, time.as_nanos() as u64);
        let due = to.saturating_sub(from) as f64 / 1e9 * self.per_second;
        let stranded = (1.0 - history.admitted(from, to) as f64 / due).max(0.0);
        let excess = (history.excess(self.per_second) - self.per_second).max(0.0);
        Ok(Seen { history, commands, stranded, excess })
    }
}

/// All of it.
pub fn run(redis: &Redis, runtime: &Runtime, times: &StoreTimes, report: &mut BenchReport) -> anyhow::Result<Mixed> {
    report.section(
        "A hot key that many nodes share",
        "All nodes live in this process, each with connections of its own, and are asked in turn, open loop, for more \
         than the limit, from an empty Redis on; the burst equals the limit. A command is a script call, whatever it \
         is about. Stranded is what was asked for and not admitted once the burst was spent, of the limit. Over is what \
         the worst stretch of time admitted beyond burst and rate, of what one second allows.",
    );
    let mut rows = Vec::new();
    for case in [HOT, TEN, BEHIND] {
        let seen = case.run(redis, runtime, times.stretch)?;
        let per_command = seen.history.decisions as f64 / seen.commands.max(1) as f64;
        rows.push(vec![
            case.name.to_owned(),
            seen.history.decisions.to_string(),
            seen.history.admitted(0, u64::MAX).to_string(),
            seen.commands.to_string(),
            format!("{per_command:.0}"),
            format!("{:.1} %", seen.stranded * 100.0),
            format!("{:.0}", seen.excess),
            format!("{:.1} %", seen.excess / case.per_second * 100.0),
            seen.history.errors.to_string(),
        ]);
        hold(&case, &seen, per_command, report);
    }
    let heads =
        ["case", "decisions", "admitted", "commands", "per command", "stranded", "over, units", "over", "errors"];
    report.table(&heads, &rows);
    let mixed = mixed(redis, runtime, times, report)?;
    refused(redis, runtime, times, report)?;
    redis.flush();
    Ok(mixed)
}

fn hold(case: &Case, seen: &Seen, per_command: f64, report: &mut BenchReport) {
    let mut target = |what: &str, bound, measured| report.number(&format!("{}: {what}", case.name), bound, measured);
    if case.nodes == HOT.nodes {
        target("decisions per command", Bound::AtLeast(50.0), per_command);
        target("stranded, of the limit", Bound::AtMost(0.05), seen.stranded);
        // P5: what was leased within the last life of a lease may come on top, and no more.
        target("units over, P5", Bound::AtMost(case.per_second * LEASE_TTL.as_secs_f64()), seen.excess);
    } else {
        let most = if case.consistency == "async" { 0.2 } else { 0.05 };
        target("over, of one period", Bound::AtMost(most), seen.excess / case.per_second);
    }
    target("errors", Bound::AtMost(0.0), seen.history.errors as f64);
}

/// Many users, few of them frequent.
fn mixed(redis: &Redis, runtime: &Runtime, times: &StoreTimes, report: &mut BenchReport) -> anyhow::Result<Mixed> {
    report.section(
        "A mixed load in leased mode",
        &format!(
            "Four nodes, {USERS} users by Zipf's law with exponent {EXPONENT}, each of them limited to 100/s: the most \
             frequent are refused most of the time, the rare ones are never leased. Closed loop with {CALLERS} callers, \
             then open loop at half of the rate that they reached."
        ),
    );
    let rules =
        "rules:\n  - { name: users, key_by: user_id, consistency: leased, limit: { requests: 100, window: 1s } }\n";
    let (zipf, time) = (Arc::new(Zipf::new(USERS, EXPONENT)), times.stretch / 2);
    let nodes = FleetNodes::start(redis, runtime, 4, rules)?;
    let (mut rows, mut told, mut rate) = (Vec::new(), None, 0.0);
    for is_closed in [true, false] {
        redis.flush();
        let (before, own) = (redis.figures(), process::own_cpu());
        let (checks, denied, errors) = if is_closed {
            let tally = nodes.mix(runtime, CALLERS, &zipf, time);
            (tally.checks, tally.denied, tally.errors)
        } else {
            let (zipf, mut draw) = (zipf.clone(), Draw::new(1, 3));
            let history = nodes.ask(runtime, rate / 2.0, time, move || zipf.rank(&mut draw))?;
            (history.decisions, history.decisions - history.admitted(0, u64::MAX) - history.errors, history.errors)
        };
        let (figures, own) = (redis.figures().since(&before), process::own_cpu() - own);
        let decided = checks - errors;
        let per_check = |figure: u64| figure as f64 / decided.max(1) as f64;
        let name = if is_closed { "closed loop" } else { "open loop" };
        rate = (decided as f64 / time.as_secs_f64()).max(1.0);
        rows.push(vec![
            name.to_owned(),
            format!("{:.1}", rate / 1e3),
            format!("{:.0} %", per_check(denied) * 100.0),
            format!("{:.3}", per_check(figures.calls)),
            format!("{:.2}", per_check(figures.cpu) / 1e3),
            errors.to_string(),
        ]);
        let mixed = Mixed {
            commands: per_check(figures.calls),
            own: per_check(own) / 1e3,
            redis: per_check(figures.cpu) / 1e3,
            bytes: per_check(figures.bytes_in + figures.bytes_out),
        };
        report.number(
            &format!("mixed load, leased, {name}: commands per decision"),
            Bound::AtMost(0.1),
            mixed.commands,
        );
        told = told.or(Some(mixed));
    }
    report.table(&["load", "k checks/s", "denied", "commands per decision", "Redis CPU µs", "errors"], &rows);
    told.ok_or_else(|| anyhow::anyhow!("nothing was measured"))
}

/// One user who has nothing left, in exact mode: the answer is known until its time comes.
fn refused(redis: &Redis, runtime: &Runtime, times: &StoreTimes, report: &mut BenchReport) -> anyhow::Result<()> {
    report.section("A refused hot key in exact mode", "One node, one user with one request a minute, 64 callers.");
    let rules = "rules:\n  - { name: one, key_by: user_id, limit: { requests: 1, window: 1m, burst: 1 } }\n";
    let nodes = FleetNodes::start(redis, runtime, 1, rules)?;
    redis.flush();
    let before = redis.figures();
    let tally = nodes.mix(runtime, CALLERS, &Arc::new(Zipf::new(1, 1.0)), times.stretch / 4);
    let figures = redis.figures().since(&before);
    let reached = figures.reads.max(figures.calls) as f64 / tally.checks.max(1) as f64;
    report.note(&format!(
        "{} checks, {} refused, {} bucket reads in {} script calls.",
        tally.checks, tally.denied, figures.reads, figures.calls
    ));
    report.number("refused hot key: checks that never reach Redis", Bound::AtLeast(0.99), 1.0 - reached);
    Ok(())
}
