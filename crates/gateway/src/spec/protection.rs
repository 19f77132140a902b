//! What keeps an upstream from more work than it can do.

use tollgate_overload::spec::{ShedSpec, read_breaker, read_concurrency, read_queue, read_shed, read_throttle};
use tollgate_overload::{AdaptiveConfig, AdmissionConfig, BreakerConfig, Priorities, QueueConfig, ThrottleConfig};
use tollgate_rules::problem::Problems;
use tollgate_rules::read::MapFields;

/// The protection of an upstream. Without a field, that part is off.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProtectionSpec {
    /// The classes of all routes.
    pub priorities: Priorities,
    /// Requests that may be in flight at once, over all servers; more are refused.
    pub max_in_flight: Option<u32>,
    /// The same, following the upstream; more wait.
    pub concurrency: Option<AdaptiveConfig>,
    /// Who waits.
    pub queue: Option<QueueConfig>,
    /// What is left for the most important class, and when busy workers shed.
    pub shed: Option<ShedSpec>,
    /// When calls stop because most fail.
    pub breaker: Option<BreakerConfig>,
    /// How many calls go to an upstream that refuses them.
    pub throttle: Option<ThrottleConfig>,
}

impl ProtectionSpec {
    pub(super) fn read(fields: &MapFields<'_>, priorities: &Priorities, problems: &mut Problems) -> ProtectionSpec {
        let max = fields.get("max_in_flight").and_then(|value| value.integer(1..=1_000_000, problems));
        ProtectionSpec {
            priorities: priorities.clone(),
            max_in_flight: max.and_then(|max| u32::try_from(max).ok()),
            concurrency: fields.get("concurrency").map(|value| read_concurrency(value, problems)),
            queue: fields.get("queue").map(|value| read_queue(value, problems)),
            shed: fields.get("shed").map(|value| read_shed(value, problems)),
            breaker: fields.get("breaker").map(|value| read_breaker(value, problems)),
            throttle: fields.get("throttle").map(|value| read_throttle(value, problems)),
        }
    }

    /// Limit and queue; `None` if requests never wait.
    pub(crate) fn admission(&self) -> Option<AdmissionConfig> {
        if self.concurrency.is_none() && self.queue.is_none() {
            return None;
        }
        let config = AdmissionConfig::new(self.concurrency.unwrap_or_default());
        Some(AdmissionConfig {
            queue: self.queue.unwrap_or_default(),
            reserved_percent: self.shed.map_or(0, |shed| shed.reserved_percent),
            reserved_for: self.priorities.highest(),
            ..config
        })
    }
}
