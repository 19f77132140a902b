//! Checks grants.

use super::rule_names::RuleNames;
use super::{ProblemCollector, REQUESTS_MAX};
use crate::key::KeyBy;
use crate::problem::{Problem, quote};
use crate::spec::{GrantSpec, RuleFile, RuleSpec};

/// Problems of one grant by itself.
pub(crate) fn grant(grant: &GrantSpec, root: String) -> Vec<Problem> {
    let mut found = ProblemCollector { root, at: grant.at, problems: Vec::new() };
    found.client_key(&grant.client_key);
    if !(1..=REQUESTS_MAX).contains(&grant.amount) {
        let help = format!("allowed: 1 to {REQUESTS_MAX}");
        found.add("out-of-range", "amount", format!("a grant of {} units", grant.amount), &help);
    }
    if grant.valid_until_ns.is_some_and(|until| until <= grant.valid_from_ns) {
        let message = "the grant ends before it starts".to_owned();
        found.add("bad-time", "valid_until", message, "`valid_until` must be later than `valid_from`");
    }
    found.problems
}

/// Problems between grants and rules.
pub(super) fn grants(file: &RuleFile, names: &mut RuleNames<'_>, problems: &mut Vec<Problem>) {
    for (index, grant) in file.grants.iter().enumerate().filter(|(_, grant)| !grant.rule.is_empty()) {
        let mut found = ProblemCollector { root: format!("grants[{index}]"), at: grant.at, problems: Vec::new() };
        let rules: Vec<usize> = names.overridden(&grant.rule).to_vec();
        if rules.is_empty() {
            let message = format!("there is no rule with the name {}", quote(&grant.rule));
            found.add("unknown-rule", "rule", message, &names.suggest(&grant.rule));
        }
        for rule in rules.into_iter().filter_map(|rule| file.rules.get(rule)) {
            if found.problems.is_empty() {
                suits(grant, rule, file.key_by.as_ref(), &mut found);
            }
        }
        problems.append(&mut found.problems);
    }
}

/// A grant needs a quota, and one that is counted for its client alone.
fn suits(grant: &GrantSpec, rule: &RuleSpec, default_key: Option<&KeyBy>, found: &mut ProblemCollector) {
    if rule.limit.as_ref().is_none_or(|limit| limit.quota.is_none()) {
        let message = format!("the rule {} is not a quota", quote(&grant.rule));
        found.add("bad-grant", "rule", message, "grants add to quotas; to change a limit, use an override");
        return;
    }
    let client = KeyBy::client();
    let key_by = rule.key_by.as_ref().or(default_key).unwrap_or(&client);
    let (what, own) = identifying(&grant.client_key);
    if !key_by.parts.iter().flatten().any(|name| own.contains(&name.as_str())) {
        let message = format!("the rule {} counts by {key_by}, not by {what}", quote(&grant.rule));
        let help =
            "name the client that the rule counts by: otherwise several clients would get the units, each of them all";
        found.add("bad-grant", "client_key", message, help);
    }
}

/// The kind of a client key, and the attributes that a key of a rule may count it by.
fn identifying(client_key: &str) -> (&'static str, &'static [&'static str]) {
    match client_key.split_once(':') {
        Some(("key", _)) => ("api_key", &["api_key", "client_key"]),
        Some(("user", _)) => ("user_id", &["user_id", "client_key"]),
        Some(("ip", _)) => ("ip", &["ip", "client_key"]),
        Some(("org", _)) => ("org", &["org", "client_key"]),
        // Rules by key or user count requests that name neither by the client key.
        _ => ("client_key", &["client_key", "api_key", "user_id"]),
    }
}
