//! What clients observed: when each request was sent, when it was answered, and how.

use super::{Admission, AdmissionMode};

/// One request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientObservation {
    /// The rule that the answer named.
    pub rule: String,
    /// The key of the caller.
    pub key: String,
    /// The node that was asked.
    pub node: String,
    /// How it was decided; `None` without an answer.
    pub mode: Option<AdmissionMode>,
    /// Whether it passed.
    pub allowed: bool,
    /// What it cost.
    pub cost: u64,
    /// When it was sent, in nanoseconds of the client's clock.
    pub asked: u64,
    /// When the answer arrived.
    pub heard: u64,
}

/// The admissions among them.
pub fn as_admissions(observations: &[ClientObservation]) -> impl Iterator<Item = Admission> + '_ {
    observations.iter().filter(|observation| observation.allowed).filter_map(|observation| {
        Some(Admission {
            rule: observation.rule.clone(),
            key: observation.key.clone(),
            node: observation.node.clone(),
            mode: observation.mode?,
            units: observation.cost,
            from: observation.asked,
            to: observation.heard,
        })
    })
}
