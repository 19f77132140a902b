//! Warnings about anchors of clients that no quota of the file has a use for.

use std::collections::BTreeSet;

use tollgate_calendar::{Anchor, Every};

use crate::problem::{Problem, quote};
use crate::spec::{ANCHOR, ClientSpec, Enforcement, RuleFile};

/// The first client with each such anchor. A file without quotas may mean those of a database.
pub(super) fn unsuitable(file: &RuleFile) -> Vec<Problem> {
    let in_force = file.rules.iter().filter(|rule| rule.mode != Enforcement::Off);
    let quotas = in_force.filter_map(|rule| rule.limit.as_ref()?.quota.as_deref());
    let periods: BTreeSet<Every> = quotas.map(|quota| quota.calendar.every()).collect();
    if periods.is_empty() {
        return Vec::new();
    }
    let (mut problems, mut seen) = (Vec::new(), BTreeSet::new());
    for (number, client) in file.clients.iter().enumerate() {
        let Some(anchor) = anchor_of(client).filter(|anchor| seen.insert(*anchor)) else { continue };
        if periods.iter().any(|every| Anchor::find(*every, anchor).is_some()) {
            continue;
        }
        let listed: Vec<&str> = periods.iter().map(|every| every.name()).collect();
        let message = format!(
            "the anchor {} suits no quota of this file, which are by {}: they start where the rule says",
            quote(anchor),
            listed.join(", ")
        );
        let field = format!("clients[{number}].{ANCHOR}");
        let problem = Problem::warning("unsuitable-anchor", client.at, field, message);
        problems.push(problem.help("write an anchor of one of these periods, or leave it out"));
    }
    problems
}

fn anchor_of(client: &ClientSpec) -> Option<&str> {
    client.attributes.iter().find(|(name, _)| name == ANCHOR).map(|(_, value)| value.as_str())
}
