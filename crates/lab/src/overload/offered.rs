//! The load: two open loops, and what their callers saw.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use tollgate_load::{LatencyHistogram, LoadPace, LoadPlan, LoadReport, LoadRequest, Target, run};

use super::failed;

/// How long a caller waits, from the moment its request was due.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// Connections per request and second: those in flight for as long as a caller waits, and those that are opened again.
const CONNECTIONS_PER_RATE: f64 = 1.3;

/// Rates of two classes at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfferedMix {
    pub critical: f64,
    pub sheddable: f64,
    pub warm_up: Duration,
    pub measured: Duration,
}

impl OfferedMix {
    /// Offers it to a gateway.
    pub(super) fn offer(self, gateway: SocketAddr) -> io::Result<MixOutcome> {
        let class = |path: &str, rate: f64| {
            let target = Target::parse(&format!("http://{gateway}{path}")).map_err(failed)?;
            let plan = LoadPlan {
                connections: (rate * CONNECTIONS_PER_RATE) as usize + 16,
                warm_up: self.warm_up,
                duration: self.measured,
                pace: LoadPace::Open { per_second: rate },
                timeout: PATIENCE,
                max_lateness: PATIENCE,
                ..LoadPlan::default()
            };
            run(&target, &LoadRequest::get(path), &plan, &mut |_| {}).map(ClassOutcome::new).map_err(failed)
        };
        let (critical, sheddable) = thread::scope(|scope| {
            let critical = scope.spawn(|| class("/critical/1", self.critical));
            let sheddable = class("/sheddable/1", self.sheddable);
            (critical.join(), sheddable)
        });
        let critical = critical.unwrap_or_else(|_| Err(io::Error::other("the critical load failed")))?;
        Ok(MixOutcome { critical, sheddable: sheddable? })
    }
}

/// What the callers of one class saw.
#[derive(Clone, Debug)]
pub struct ClassOutcome {
    /// Requests that were due.
    pub offered: u64,
    /// Requests that were not served: shed, failed, given up, never sent.
    pub unserved: u64,
    /// Of those, answered with 503.
    pub shed: u64,
    /// Requests per second that were served while the caller waited.
    pub goodput: f64,
    /// Latencies of what was served.
    pub latency: LatencyHistogram,
}

impl ClassOutcome {
    fn new(report: LoadReport) -> ClassOutcome {
        let served = report.allowed_latency.between(Duration::ZERO, PATIENCE);
        ClassOutcome {
            offered: report.sent + report.unsent,
            unserved: report.errors.total() + report.denied + report.unsent,
            shed: report.errors.statuses.get(&503).copied().unwrap_or(0),
            goodput: served as f64 / report.duration.as_secs_f64(),
            latency: report.allowed_latency,
        }
    }

    /// The share of requests that was served.
    pub fn served_share(&self) -> f64 {
        1.0 - (self.unserved as f64 / self.offered.max(1) as f64).min(1.0)
    }
}

/// What the callers of both classes saw.
#[derive(Clone, Debug)]
pub struct MixOutcome {
    /// Of critical requests.
    pub critical: ClassOutcome,
    /// Of sheddable requests.
    pub sheddable: ClassOutcome,
}

impl MixOutcome {
    /// Requests per second that were served while the caller waited.
    pub fn goodput(&self) -> f64 {
        self.critical.goodput + self.sheddable.goodput
    }

    /// 99th percentile of what was served.
    pub fn p99(&self) -> Duration {
        self.quantile(0.99)
    }

    /// A quantile of what was served; zero if nothing was.
    pub fn quantile(&self, part: f64) -> Duration {
        let mut latency = self.critical.latency.clone();
        latency.add(&self.sheddable.latency);
        latency.quantile(part)
    }

    /// The share of requests that was not served.
    pub fn failed_share(&self) -> f64 {
        let offered = self.critical.offered + self.sheddable.offered;
        (self.critical.unserved + self.sheddable.unserved) as f64 / offered.max(1) as f64
    }
}

impl fmt::Display for MixOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "goodput {:.0}/s, p99 {} ms, critical served {:.2} %, sheddable served {:.1} %",
            self.goodput(),
            self.p99().as_millis(),
            self.critical.served_share() * 100.0,
            self.sheddable.served_share() * 100.0
        )
    }
}
