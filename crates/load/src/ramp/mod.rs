//! A ramp: steps of rising load against a server, until it no longer keeps up. Where that is, is its knee.
//!
//! Every step is an open loop at one rate, so a server that becomes slow is asked as much as before, and its delays count
//! in full. Rates rise by a factor until a step fails; then the interval between the last good and the first bad rate is
//! halved. A step that fails is repeated once, as a pause of the machine is no knee; after a failure, the ramp waits until
//! the server is as fast as before.
//!
//! The load is bounded: by rate, requests, time and connections, and a step in which most requests fail or take far too
//! long ends early.

mod plan;
mod proposal;
mod search;
mod step;

use std::time::Duration;

use crate::clock;
use crate::error::LoadError;
use crate::generator::{run, run_while};
use crate::plan::{LoadPace, LoadPlan};
use crate::report::LatencyHistogram;
use crate::request::LoadRequest;
use crate::target::Target;

pub use plan::{KneeCriteria, RampPlan};
pub use proposal::LimitProposal;
use search::RampSearch;
pub use step::{RampStep, StepVerdict};

/// Latencies that make up the baseline: enough for a 99th percentile.
const BASELINE_MIN: u64 = 200;
/// After a failed step: how long one look at the server takes, at which rate, and how many there are.
const LOOK: Duration = Duration::from_millis(500);
const LOOK_RATE: f64 = 4.0;
const LOOKS_MAX: usize = 20;

/// Why a ramp ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RampEnd {
    /// The knee is between two rates that are close together.
    Found,
    /// The server kept up with the highest rate that the plan allows.
    RateMax,
    /// The next step would have exceeded the number of requests that the plan allows.
    RequestsMax,
    /// The next step would have exceeded the time that the plan allows.
    TimeMax,
    /// After a failed step the server did not become as fast as before.
    Unrecovered,
    /// The server did not even keep up with one request per second.
    TooSlow,
}

/// The result of a ramp.
#[derive(Clone, Debug)]
pub struct RampReport {
    /// All steps, in the order in which they were measured.
    pub steps: Vec<RampStep>,
    /// The 99th percentile without load, that steps are compared with.
    pub baseline: Duration,
    /// Why it ended.
    pub end: RampEnd,
    /// Requests sent in all.
    pub requests: u64,
}

impl RampReport {
    /// The step of the highest rate that the server kept up with.
    pub fn best(&self) -> Option<&RampStep> {
        self.kept().max_by(|a, b| a.offered.total_cmp(&b.offered))
    }

    /// The same, if the server failed at a higher rate: the knee.
    pub fn knee(&self) -> Option<&RampStep> {
        let best = self.best()?;
        self.steps.iter().any(|step| !step.kept_up() && step.offered > best.offered).then_some(best)
    }

    fn kept(&self) -> impl Iterator<Item = &RampStep> {
        // A rate that failed once and was kept up with once counts as kept: the failure was a pause of the machine.
        self.steps.iter().filter(|step| step.kept_up())
    }
}

/// Measures step after step, and calls `on_step` after each.
pub fn ramp(
    target: &Target,
    request: &LoadRequest,
    plan: &RampPlan,
    on_step: &mut dyn FnMut(&RampStep),
) -> Result<RampReport, LoadError> {
    plan.check()?;
    let run = RampRun { target, request, plan, baseline: LatencyHistogram::new(), requests: 0, start: clock::now() };
    run.run(on_step)
}

struct RampRun<'a> {
    target: &'a Target,
    request: &'a LoadRequest,
    plan: &'a RampPlan,
    /// Latencies of the first steps that the server kept up with.
    baseline: LatencyHistogram,
    requests: u64,
    start: u64,
}

impl RampRun<'_> {
    fn run(mut self, on_step: &mut dyn FnMut(&RampStep)) -> Result<RampReport, LoadError> {
        let mut search = RampSearch::new(self.plan.first, self.plan.factor, self.plan.rate_max);
        let mut steps = Vec::new();
        let end = loop {
            let rate = match search.next_rate() {
                Ok(rate) => rate,
                Err(end) => break end,
            };
            if let Some(end) = self.bound(rate, self.plan.warm_up + self.plan.step) {
                break end;
            }
            let step = self.measure(rate)?;
            on_step(&step);
            let kept_up = step.kept_up();
            search.record(rate, step.verdict);
            steps.push(step);
            if !kept_up && let Some(end) = self.recover()? {
                break end;
            }
        };
        Ok(RampReport { steps, baseline: self.baseline.quantile(0.99), end, requests: self.requests })
    }

    /// The bound that this rate would exceed in so much time.
    fn bound(&self, rate: f64, time: Duration) -> Option<RampEnd> {
        let elapsed = Duration::from_nanos(clock::now() - self.start);
        let requests = self.requests as f64 + rate * time.as_secs_f64();
        match () {
            () if requests > self.plan.requests_max as f64 => Some(RampEnd::RequestsMax),
            () if elapsed + time > self.plan.time_max => Some(RampEnd::TimeMax),
            () => None,
        }
    }

    fn measure(&mut self, rate: f64) -> Result<RampStep, LoadError> {
        let (criteria, baseline) = (self.plan.criteria, self.baseline_p99());
        let load = self.load(rate, self.plan.warm_up, self.plan.step);
        let report =
            run_while(self.target, self.request, &load, &mut |second| !criteria.is_hopeless(second, baseline))?;
        self.requests += report.sent + (rate * self.plan.warm_up.as_secs_f64()) as u64;
        let step = RampStep::new(rate, &report, criteria, baseline);
        if step.kept_up() && self.baseline.len() < BASELINE_MIN {
            self.baseline.add(&report.allowed_latency);
        }
        Ok(step)
    }

    /// Looks at the server with little load until it is as fast as before; a reason to end if that does not happen.
    fn recover(&mut self) -> Result<Option<RampEnd>, LoadError> {
        let (criteria, baseline) = (self.plan.criteria, self.baseline_p99());
        let mut before: Option<Duration> = None;
        for _ in 0..LOOKS_MAX {
            if let Some(end) = self.bound(LOOK_RATE, LOOK) {
                return Ok(Some(end));
            }
            let report = run(self.target, self.request, &self.load(LOOK_RATE, Duration::ZERO, LOOK), &mut |_| {})?;
            self.requests += report.sent;
            let latest = report.latency.max();
            let is_fast = match baseline {
                Some(baseline) => latest <= criteria.slow(baseline),
                // The first step has failed: nothing says what is fast, except that it does not become faster any more.
                None => before.is_some_and(|before| latest + criteria.grace >= before),
            };
            if report.answered > 0 && report.allowed == report.sent {
                if is_fast {
                    return Ok(None);
                }
                before = Some(latest);
            }
        }
        Ok(Some(RampEnd::Unrecovered))
    }

    fn load(&self, rate: f64, warm_up: Duration, duration: Duration) -> LoadPlan {
        // As many as are in flight at once if a request takes two seconds, within the bound.
        let wanted = (rate * 2.0).ceil() as usize;
        LoadPlan {
            connections: wanted.max(8).min(self.plan.connections),
            warm_up,
            duration,
            pace: LoadPace::Open { per_second: rate },
            timeout: self.plan.timeout,
            ..LoadPlan::default()
        }
    }

    fn baseline_p99(&self) -> Option<Duration> {
        (!self.baseline.is_empty()).then(|| self.baseline.quantile(0.99))
    }
}
