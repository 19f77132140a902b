//! The plan of a run: connections, rate, duration and keys.

use std::time::Duration;

use crate::error::LoadError;

/// Maximum number of connections: each needs a file descriptor, and one thread serves them all.
pub const CONNECTIONS_MAX: usize = 50_000;
/// Maximum number of requests in flight on one connection.
pub const PIPELINE_MAX: usize = 1_000;
/// Maximum number of keys: a key has twelve digits.
pub const KEYS_MAX: u64 = 1_000_000_000_000;

/// The plan of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadPlan {
    /// Number of connections.
    pub connections: usize,
    /// Requests in flight on each connection.
    pub pipeline: usize,
    /// Time at the start that is not measured, in which connections and caches warm up.
    pub warm_up: Duration,
    /// Measured time.
    pub duration: Duration,
    /// Closed or open loop.
    pub pace: LoadPace,
    /// Number of different keys.
    pub keys: u64,
    /// Distribution of the keys.
    pub popularity: Popularity,
    /// Seed of the key sequence: the same seed sends the same requests.
    pub seed: u64,
    /// Whether the generator sleeps, spins or yields while it waits for replies.
    pub wait: WaitMode,
    /// Longest time for a connection to open, and for a reply to arrive.
    pub timeout: Duration,
    /// Open loop: how late a request may be sent. Requests that could not be sent by then are dropped and counted.
    pub max_lateness: Duration,
}

/// Closed or open loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadPace {
    /// Closed loop: a reply triggers the next request.
    Closed,
    /// Open loop: requests fall due at a fixed rate, independent of the server.
    Open {
        /// Requests per second.
        per_second: f64,
    },
}

/// Distribution of the keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// All keys are equally likely.
    Uniform,
    /// Zipf's law: the n-th key has the weight n to the power of minus this exponent, as in web traffic.
    Zipf(f64),
}

/// Whether the generator sleeps, spins or yields while it waits for replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// Sleeps until an event arrives: suits a shared machine.
    Sleep,
    /// Polls without sleeping: the server does not pay for waking the generator, which costs more than a check in a
    /// virtual machine.
    Spin,
    /// The same, and lets other threads of its core run whenever nothing has arrived: for a core that it shares with a
    /// server that does likewise.
    Yield,
}

impl Default for LoadPlan {
    fn default() -> LoadPlan {
        LoadPlan {
            connections: 50,
            pipeline: 1,
            warm_up: Duration::from_secs(1),
            duration: Duration::from_secs(10),
            pace: LoadPace::Closed,
            keys: 100_000,
            popularity: Popularity::Uniform,
            seed: 1,
            wait: WaitMode::Sleep,
            timeout: Duration::from_secs(5),
            max_lateness: Duration::from_secs(1),
        }
    }
}

impl LoadPlan {
    /// Rejects invalid values.
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        let refuse = |text: String| Err(LoadError::invalid(text));
        match self {
            _ if self.connections == 0 || self.connections > CONNECTIONS_MAX => {
                refuse(format!("{} connections: from 1 to {CONNECTIONS_MAX} can be kept", self.connections))
            }
            _ if self.pipeline == 0 || self.pipeline > PIPELINE_MAX => {
                refuse(format!("{} requests at once: from 1 to {PIPELINE_MAX} go on a connection", self.pipeline))
            }
            _ if self.keys == 0 || self.keys > KEYS_MAX => {
                refuse(format!("{} keys: from 1 to {KEYS_MAX} can be told apart", self.keys))
            }
            _ if self.duration.is_zero() => refuse("the duration is zero".to_owned()),
            LoadPlan { pace: LoadPace::Open { per_second }, .. } if !(*per_second > 0.0 && *per_second <= 1e9) => {
                refuse(format!("{per_second} requests per second: a rate is above 0 and at most 1e9"))
            }
            LoadPlan { popularity: Popularity::Zipf(exponent), .. } if !(*exponent > 0.0 && *exponent <= 10.0) => {
                refuse(format!("an exponent of {exponent}: it is above 0 and at most 10"))
            }
            _ => Ok(()),
        }
    }
}
