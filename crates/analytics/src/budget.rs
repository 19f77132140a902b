//! The division of the memory.

use crate::space_saving::NAME_BYTES_MAX;

/// The memory of analytics, divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficBudget {
    /// Bytes of the series of rules and namespaces.
    pub rule_series: usize,
    /// Bytes of the series of clients.
    pub client_series: usize,
    /// Rules that have summaries of their clients at the same time.
    pub summaries: usize,
    /// Clients in each summary.
    pub clients: usize,
    /// Decisions in the ring of refusals, and in the ring of the others.
    pub recent: usize,
    /// Rules that are counted by name.
    pub rules: usize,
}

/// Clients in each summary: the error of a count is at most a sixty-fourth of what its rule counted in the period.
const CLIENTS: usize = 64;
/// A client in a summary: its counter, its name, and its place in heap and index.
const CLIENT_BYTES: usize = 256 + 2 * NAME_BYTES_MAX;
/// Summaries of one rule: two periods of two kinds, and the clients closest to the limit.
pub(crate) const SUMMARY_BYTES: usize = 4 * CLIENTS * CLIENT_BYTES + 16 * 1024;
/// A decision in the ring, at the most: its client, and the rulings that are kept of it.
const RECENT_BYTES: usize = 1280;
/// The state of a rule without summaries, with its name twice.
const RULE_BYTES: usize = 768;

impl TrafficBudget {
    /// The default: enough for the seconds of an hour of a hundred rules.
    pub const BYTES_DEFAULT: usize = 32 << 20;
    /// The least that is of use.
    pub const BYTES_MIN: usize = 1 << 20;

    /// Divides so many bytes: a quarter each for the series of rules, the series of clients and the summaries, and the rest
    /// for single decisions and the names of rules.
    pub fn of(bytes: usize) -> TrafficBudget {
        let eighth = bytes / 8;
        TrafficBudget {
            rule_series: 2 * eighth,
            client_series: 2 * eighth,
            summaries: (2 * eighth / SUMMARY_BYTES).max(1),
            clients: CLIENTS,
            recent: ((eighth + eighth / 2) / RECENT_BYTES / 2).max(16),
            rules: (eighth / 2 / RULE_BYTES).max(16),
        }
    }
}
