//! Many times what a server carries, through `tollgate gateway`, with shedding and without: P25 over real sockets.
//!
//! Three processes: a server with a knee, the gateway, and two open loops that offer critical and sheddable requests.
//! Callers give up after a second; the server works for them nevertheless. Every row starts with a new server and a new
//! gateway: an overload that is not shed leaves a queue behind that takes longer than the row.

mod offered;
mod report;
mod rig;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tollgate_load::{LoadError, LoadRequest, RampPlan, Target, ramp};

pub use offered::{ClassOutcome, MixOutcome};
pub use report::{goals, plots, table};

use offered::OfferedMix;
use rig::{OverloadRig, Shedding};

/// What is offered, in multiples of the peak.
pub const TIMES: [f64; 5] = [0.5, 1.0, 2.0, 5.0, 10.0];
/// Critical requests, as a share of the peak: always as many, whatever is offered.
const CRITICAL_SHARE: f64 = 0.2;
/// Not measured: the limit finds its place.
const WARM_UP: Duration = Duration::from_secs(10);
/// The peak is the highest of these shares of the knee at which nothing fails and nothing queues for so long.
const PEAK_SHARES: [f64; 6] = [1.0, 0.95, 0.9, 0.85, 0.8, 0.7];
/// At the peak, so many requests may fail.
const PEAK_FAILED_MAX: f64 = 0.001;

/// The programs, and how long a row is measured.
#[derive(Clone, Debug)]
pub struct OverloadPlan {
    /// The gateway's binary.
    pub tollgate: PathBuf,
    /// The server's.
    pub knee: PathBuf,
    /// The measured time of a row; of the last, with shedding, twice as long: it includes a measurement of the best time.
    pub measured: Duration,
}

/// What the server carries without shedding, at the load that suits it best.
#[derive(Clone, Debug)]
pub struct MeasuredPeak {
    /// Requests offered per second.
    pub rate: f64,
    /// What came of it.
    pub outcome: MixOutcome,
}

/// One row: a load, with shedding or without.
#[derive(Clone, Debug)]
pub struct OverloadRow {
    /// What is offered, in multiples of the peak.
    pub times: f64,
    /// Whether the gateway shed.
    pub is_shedding: bool,
    /// What came of it.
    pub outcome: MixOutcome,
}

/// Finds the peak, and measures every row; `tell` gets a line after each.
pub fn run(plan: &OverloadPlan, tell: &mut dyn FnMut(&str)) -> io::Result<(MeasuredPeak, Vec<OverloadRow>)> {
    let peak = find_peak(plan, tell)?;
    let mut rows = Vec::new();
    for (shedding, is_shedding) in [(Shedding::Off, false), (Shedding::Default, true)] {
        for times in TIMES {
            let is_longest = is_shedding && times == TIMES[TIMES.len() - 1];
            let measured = if is_longest { plan.measured * 2 } else { plan.measured };
            let rig = OverloadRig::start(plan, shedding)?;
            let outcome = mix(peak.rate, times, measured).offer(rig.gateway())?;
            tell(&format!("{times} times the peak, shedding {shedding:?}: {outcome}"));
            rows.push(OverloadRow { times, is_shedding, outcome });
        }
    }
    Ok((peak, rows))
}

fn find_peak(plan: &OverloadPlan, tell: &mut dyn FnMut(&str)) -> io::Result<MeasuredPeak> {
    let rig = OverloadRig::start(plan, Shedding::Off)?;
    let target = Target::parse(&format!("http://{}/sheddable/1", rig.gateway())).map_err(failed)?;
    let ramped = ramp(&target, &LoadRequest::get(target.path()), &RampPlan::default(), &mut |_| {}).map_err(failed)?;
    let knee = ramped.knee().ok_or_else(|| io::Error::other(format!("no knee was found: {ramped:?}")))?.offered;
    let slow = RampPlan::default().criteria.slow(ramped.baseline);
    tell(&format!("knee {knee:.0}/s, without load p99 {:?}", ramped.baseline));
    for share in PEAK_SHARES {
        let rig = OverloadRig::start(plan, Shedding::Off)?;
        let rate = knee * share;
        let outcome = mix(rate, 1.0, plan.measured).offer(rig.gateway())?;
        tell(&format!("{rate:.0}/s, looking for the peak: {outcome}"));
        if outcome.failed_share() <= PEAK_FAILED_MAX && outcome.p99() <= slow {
            return Ok(MeasuredPeak { rate, outcome });
        }
    }
    Err(io::Error::other("the server keeps up with no share of its knee: something else uses this machine"))
}

fn mix(peak: f64, times: f64, measured: Duration) -> OfferedMix {
    let critical = peak * CRITICAL_SHARE;
    OfferedMix { critical, sheddable: peak * times - critical, warm_up: WARM_UP, measured }
}

fn failed(error: LoadError) -> io::Error {
    io::Error::other(error.to_string())
}
