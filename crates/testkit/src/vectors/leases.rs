//! The leases that a case of `concurrency` begins with: `"leases": {"a": 1700000060000000000}`, by holder the expiry.

use serde_json::Value;
use tollgate_core::{Concurrency, Limit, Span, Time};

use super::file::VectorRule;

/// A slot that is held before the first step.
pub(super) struct InitialLease {
    pub holder: Value,
    /// When it is taken, so that it expires when the case says.
    pub since: Time,
    /// The rule's limit with enough slots for all: the limit may have been lowered below use.
    pub limit: Limit,
}

impl VectorRule {
    /// The leases in the order in which they are taken; `now` is the time of the first step. A lease never ends later
    /// than a time to live from now: one that would was taken now.
    pub fn leases(&self, now: u64) -> Result<Vec<InitialLease>, String> {
        let leases = match self.config.get("leases") {
            Some(Value::Object(leases)) => leases,
            Some(other) => return Err(format!("\"leases\" is {other}, not an object of holders and expiries")),
            None => return Ok(Vec::new()),
        };
        let ttl = self.number("ttl_ns")?;
        let slots = Concurrency::new(leases.len() as u64, Span::from_nanos(ttl)).map_err(|error| error.to_string())?;
        let mut taken = Vec::new();
        for (holder, expiry) in leases {
            let expiry = expiry.as_u64().ok_or_else(|| format!("the expiry of {holder:?} is {expiry}"))?;
            if expiry <= now {
                continue; // it has ended
            }
            let since = expiry.checked_sub(ttl).ok_or_else(|| format!("{holder:?} began before time 0"))?.min(now);
            taken.push(InitialLease {
                holder: Value::String(holder.clone()),
                since: Time::from_nanos(since),
                limit: Limit::Concurrency(slots),
            });
        }
        taken.sort_by_key(|lease| lease.since);
        Ok(taken)
    }
}
