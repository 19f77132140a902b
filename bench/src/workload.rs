//! Rules and requests for the engine: many rules, of which a chosen few match.
//!
//! Most rules match no request, and use every kind of condition: paths, tiers, organisations, networks. The request is
//! always `GET /orders/items/17` of a free user; the number of [`MATCHING`] rules in the set is the number that match.

use anyhow::anyhow;
use tollgate_core::{Attribute, Request};
use tollgate_rules::{OverrideSpec, RuleFile};
use tollgate_ruleset::{CompileOptions, RuleSet};

use crate::keys;
use crate::limit::{BURST, PERIOD};

/// Rules that match every request, most particular first.
const MATCHING: [&str; 3] = [
    "name: orders, match: { endpoint: 'GET /orders/items/*' }, key_by: user_id",
    "name: free, match: { tier: free }, key_by: user_id",
    "name: everybody, key_by: [user_id, tier]",
];

/// How a rule set is made.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Rules in all.
    pub rules: usize,
    /// Of which so many match.
    pub matching: usize,
    /// Clients with other numbers for the first rule that matches; the first keys of every course are among them.
    pub overrides: usize,
}

impl Workload {
    /// Compiles it.
    pub fn compile(self) -> anyhow::Result<RuleSet> {
        let mut file = self.read()?;
        file.overrides.extend((0..self.overrides).map(|number| OverrideSpec {
            client_key: format!("user:{}", keys::key(number)),
            rule: "orders".to_owned(),
            burst: Some(u64::from(BURST) - number as u64 % 1000),
            ..OverrideSpec::default()
        }));
        RuleSet::compile(&[file], &CompileOptions::reproducible()).map_err(|problems| anyhow!("{problems:?}"))
    }

    fn read(self) -> anyhow::Result<RuleFile> {
        let limit = format!("limit: {{ requests: 1, window: {}s, burst: {BURST} }}", PERIOD.as_secs());
        let matching = MATCHING.iter().take(self.matching).map(|rule| (*rule).to_owned());
        let bulk = (self.matching..self.rules).map(bystander);
        // The rules that match stand in the middle of the others.
        let (before, after): (Vec<_>, Vec<_>) = bulk.enumerate().partition(|(place, _)| place % 2 == 0);
        let rest = |rules: Vec<(usize, String)>| rules.into_iter().map(|(_, rule)| rule);
        let rules: String = rest(before)
            .chain(matching)
            .chain(rest(after))
            .map(|rule| format!("  - {{ {rule}, {limit} }}\n"))
            .collect();
        tollgate_rules::read("bench", &format!("rules:\n{rules}")).map_err(|report| anyhow!("{report}"))
    }
}

/// A rule that matches no request.
fn bystander(number: usize) -> String {
    let conditions = match number % 5 {
        0 => format!("endpoint: 'GET /service{number}/items/*'"),
        1 => format!("endpoint: 'POST /orders/items/{{id}}/part{number}'"),
        2 => format!("tier: plan{number}"),
        3 => format!("org: org{number}, endpoint: '*'"),
        _ => format!("ip: '10.{}.{}.0/24'", number / 256 % 256, number % 256),
    };
    format!("name: r{number}, match: {{ {conditions} }}, key_by: user_id")
}

/// The request of a free user.
#[inline]
pub fn request(user: &str) -> Request<'_> {
    Request::new()
        .with(Attribute::UserId, user)
        .with(Attribute::Tier, "free")
        .with(Attribute::Endpoint, "GET /orders/items/17")
}

/// The same with the address it came from, which has to be read and looked up among networks.
#[inline]
pub fn request_from_address(user: &str) -> Request<'_> {
    request(user).with(Attribute::Ip, "192.0.2.17")
}

#[cfg(test)]
mod tests {
    use tollgate_core::Time;
    use tollgate_ruleset::Charges;

    use super::*;

    #[test]
    fn as_many_rules_match_as_were_meant_to() {
        for (rules, matching, overrides) in [(1, 1, 0), (10, 3, 0), (1000, 1, 20), (1000, 3, 20)] {
            let set = Workload { rules, matching, overrides }.compile().unwrap();
            let mut charges = Charges::default();
            set.charges(&request(&keys::key(5)), Time::ZERO, &mut charges).unwrap();
            assert_eq!((set.rules().len(), charges.charges.len()), (rules, matching));
            charges.clear();
            set.charges(&request_from_address(&keys::key(5)), Time::ZERO, &mut charges).unwrap();
            assert_eq!(charges.charges.len(), matching);
        }
    }
}
