//! One charge that was let pass.

/// How an admission came about, by the name in logs and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdmissionMode {
    /// The shared bucket.
    Store,
    /// Units taken from it in advance.
    Lease,
    /// What the node knew.
    Async,
    /// The node's static share.
    Local,
    /// The rule's overflow bucket.
    Overflow,
    /// By policy.
    Open,
    /// The node's share while the store was away.
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
    /// Who asked.
    pub key: String,
    /// The node that answered; one that was started again is another one.
    pub node: String,
    /// How.
    pub mode: AdmissionMode,
    /// How many.
    pub units: u64,
    /// The earliest time of the decision, in nanoseconds.
    pub from: u64,
    /// The latest.
    pub to: u64,
}
