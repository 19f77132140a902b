//! One charge that was admitted.

/// The mode of a decision, as logs and responses name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdmissionMode {
    /// Decided by the shared bucket.
    Store,
    /// Units leased from it in advance.
    Lease,
    /// The node's own copy of the bucket.
    Async,
    /// The node's static share.
    Local,
    /// The rule's overflow bucket.
    Overflow,
    /// Admitted by policy.
    Open,
    /// The node's share while the store was unavailable.
    Fallback,
    /// Refused by policy: nothing is admitted in this mode.
    Closed,
    /// Limits were switched off.
    Off,
}

impl AdmissionMode {
    /// The mode of a name.
    pub fn named(name: &str) -> Option<AdmissionMode> {
        Some(match name {
            "store" => AdmissionMode::Store,
            "lease" => AdmissionMode::Lease,
            "async" => AdmissionMode::Async,
            "local" => AdmissionMode::Local,
            "overflow" => AdmissionMode::Overflow,
            "open" => AdmissionMode::Open,
            "fallback" => AdmissionMode::Fallback,
            "closed" => AdmissionMode::Closed,
            "off" => AdmissionMode::Off,
            _ => return None,
        })
    }
}

/// Units that one rule admitted for one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The rule.
    pub rule: String,
    /// The key of the caller.
    pub key: String,
    /// The node that answered; after a restart it counts as another node.
    pub node: String,
    /// The mode of the decision.
    pub mode: AdmissionMode,
    /// Units admitted.
    pub units: u64,
    /// The earliest time of the decision, in nanoseconds.
    pub from: u64,
    /// The latest.
    pub to: u64,
}
