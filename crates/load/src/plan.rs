//! How hard, how long, and over how many keys.

use std::time::Duration;

use crate::error::LoadError;

/// Most connections of one run: each is a file descriptor, and one thread serves them all.
pub const CONNECTIONS_MAX: usize = 50_000;
/// Most requests under way on one connection.
pub const PIPELINE_MAX: usize = 1_000;
/// Twelve digits are all the room that a key has.
pub const KEYS_MAX: u64 = 1_000_000_000_000;

/// The order for one run.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadPlan {
    /// Connections kept open.
    pub connections: usize,
    /// Requests under way at once on each of them.
    pub pipeline: usize,
    /// Load that is sent and not counted: connections, caches and tables settle.
    pub warm_up: Duration,
    /// Load that counts.
    pub duration: Duration,
    /// Who sets the pace.
    pub pace: LoadPace,
    /// How many different keys.
    pub keys: u64,
    /// Which of them come more often.
    pub popularity: Popularity,
    /// The draw of keys begins here: the same seed asks the same questions.
    pub seed: u64,
    /// What the generator does while no reply is there.
    pub wait: WaitMode,
    /// How long a connection may take to open, and a reply to arrive.
    pub timeout: Duration,
    /// Open loop: how late a request may be sent. What could not go out by then is given up, and counted.
    pub max_lateness: Duration,
}

/// Who sets the pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadPace {
    /// The server: a reply brings the next request.
    Closed,
    /// The clock: so many requests per second fall due, whatever the server does.
    Open {
        /// Requests per second.
        per_second: f64,
    },
}

/// How often a key is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// All alike.
    Uniform,
    /// The n-th key in proportion to n to the power of minus this exponent, as web traffic has it.
    Zipf(f64),
}

/// What the generator does while no reply is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// Sleeps until one comes: kind to a shared machine.
    Sleep,
    /// Asks again: a server never pays for waking it, which in a virtual machine costs more than a check.
    Spin,
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
    /// Refuses what cannot be carried out.
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
            _ if self.duration.is_zero() => refuse("a run of no time measures nothing".to_owned()),
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
