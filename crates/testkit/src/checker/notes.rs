//! What clients wrote down: when they asked, when they heard, and what.

use super::{Admission, Mode};

/// One request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The rule that the answer named.
    pub rule: String,
    /// Who asked.
    pub key: String,
    /// The node that was asked.
    pub node: String,
    /// How it was decided; nothing, if no answer came.
    pub mode: Option<Mode>,
    /// Whether it passed.
    pub allowed: bool,
    /// What it cost.
    pub cost: u64,
    /// When it was sent, in nanoseconds of the client's clock.
    pub asked: u64,
    /// When the answer was there.
    pub heard: u64,
}

/// The admissions among them.
pub fn as_admissions(notes: &[Note]) -> impl Iterator<Item = Admission> + '_ {
    notes.iter().filter(|note| note.allowed).filter_map(|note| {
        Some(Admission {
            rule: note.rule.clone(),
            key: note.key.clone(),
            node: note.node.clone(),
            mode: note.mode?,
            units: note.cost,
            from: note.asked,
            to: note.heard,
        })
    })
}
