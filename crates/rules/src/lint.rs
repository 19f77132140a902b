//! Warnings about valid rules that probably do not do what their author meant, each with advice.
//!
//! A lint with false alarms is ignored, so each of these reports a rule that cannot do what it was written for.

mod calendars;
mod competing;
mod keys;
mod paths;
mod penalties;
mod plans;
mod quotas;
mod scalars;

use std::time::Duration;

use crate::endpoint::EndpointMatcher;
use crate::key::KNOWN_ATTRIBUTES;
use crate::nearest::nearest;
use crate::pattern::{Matcher, Pattern};
use crate::position::SourcePosition;
use crate::problem::{Problem, Problems};
use crate::spec::{Enforcement, LimitSpec, MatchSpec, RuleFile, RuleSpec};
use crate::yaml::{self, YamlKind, YamlNode};
use competing::{COMPARISONS_MAX, CompetingRules};

/// Longest time in which the rate refills a burst without a warning.
const BURST_SECONDS: u128 = 5;

const ADDRESSES: [&str; 4] = ["address", "ip_address", "client_ip", "remote_address"];

/// Common names for built-in attributes.
const SHORT: [(&str, &str); 5] = [
    ("user", "user_id"),
    ("client", "client_key"),
    ("key", "api_key"),
    ("organisation", "org"),
    ("organization", "org"),
];

/// Warnings about a file that is valid.
pub fn lint(file: &RuleFile) -> Problems {
    let mut problems = Problems::default();
    problems.extend(misspelt_key(file));
    problems.extend(keys::implicit_of_file(file));
    problems.extend(calendars::unsuitable(file));
    problems.extend(quotas::not_held_in_file(file));
    let competing = CompetingRules::of(file);
    let mut compared_all = true;
    for (number, rule) in file.rules.iter().enumerate().filter(|(_, rule)| rule.mode != Enforcement::Off) {
        let field = file.path_of(number);
        problems.extend(contradictions(rule, &field));
        problems.extend(always_exempted(&competing, rule, &field));
        problems.extend(shadowed(&competing, number, rule, &field));
        problems.extend(spellings(rule, &field));
        problems.extend(penalties::shared(rule, &field));
        problems.extend(plans::unknown(file, rule, &field));
        if compared_all && competing.is_exhausted() {
            compared_all = false;
            problems.extend([not_compared(rule, &field)]);
        }
    }
    problems
}

/// Warnings about one valid rule that need no other rule: for rules that are created one by one, by an API or in a
/// database. Fields are the rule's own, such as `key_by`.
///
/// ```
/// let text = "rules: [{ key_by: user, limit: { requests: 10, window: 1s } }]";
/// let file = tollgate_rules::read("rules.yaml", text).unwrap();
/// let warnings = tollgate_rules::lint_rule(&file.rules[0]);
/// assert_eq!((warnings[0].code, warnings[0].field.as_str()), ("unknown-attribute", "key_by"));
/// assert_eq!(warnings[0].help.as_deref(), Some("did you mean `user_id`?"));
/// ```
pub fn lint_rule(rule: &RuleSpec) -> Vec<Problem> {
    match rule.mode {
        Enforcement::Off => Vec::new(),
        _ => {
            let open = [keys::implicit(rule, "", 0), quotas::not_held(rule, "", 0), penalties::shared(rule, "")];
            open.into_iter().flatten().chain(contradictions(rule, "")).chain(spellings(rule, "")).collect()
        }
    }
}

fn contradictions(rule: &RuleSpec, field: &str) -> impl Iterator<Item = Problem> {
    [large_burst(rule, field), never_matches(rule, field), cost_never_fits(rule, field)].into_iter().flatten()
}

fn spellings(rule: &RuleSpec, field: &str) -> impl Iterator<Item = Problem> {
    misspelt_attributes(rule, field).into_iter().chain(paths::warnings(rule, field))
}

/// The path of a field of the rule at `rule`, which is empty for a rule alone.
fn within(rule: &str, field: &str) -> String {
    if rule.is_empty() { field.to_owned() } else { format!("{rule}.{field}") }
}

/// Warnings about a file, each at the position of its field in `text`, which the file was read from.
pub fn lint_text(file: &RuleFile, text: &str) -> Problems {
    let (mut found, _) = lint(file).into_parts();
    if let Ok(root) = yaml::parse(text) {
        // The file sets `case` for all rules.
        if root.get("case").is_some() {
            found.retain(|problem| problem.code != paths::CASE);
        }
        for problem in &mut found {
            let place = position_of(&root, &problem.field);
            (problem.line, problem.column) = (place.line, place.column);
        }
        found.extend(scalars::warnings(&root));
    }
    let mut problems = Problems::default();
    problems.extend(found);
    problems
}

/// Position of a field such as `rules[2].limit.burst`, or of the closest node that contains it.
fn position_of(root: &YamlNode, field: &str) -> SourcePosition {
    let (mut node, mut place) = (root, root.position());
    for step in field.split(['.', '[']) {
        let found = match (&node.kind, step.trim_end_matches(']').parse::<usize>()) {
            (YamlKind::List(items), Ok(number)) => items.get(number).map(|item| (item, item.position())),
            (YamlKind::Map(entries), _) => {
                entries.iter().find(|(key, _)| key.text == step).map(|(key, value)| (value, key.position()))
            }
            _ => None,
        };
        let Some((below, at)) = found else { break };
        (node, place) = (below, at);
    }
    place
}

/// Reported once, at the first rule that was not compared with all others.
fn not_compared(rule: &RuleSpec, field: &str) -> Problem {
    let message = format!(
        "from here on rules were not compared with all others: {COMPARISONS_MAX} comparisons are made in one file, and \
         rules by globs or without conditions are compared with each other"
    );
    Problem::warning("not-compared", rule.at, field, message)
        .help("rules that never decide may go unnoticed below; name values in full where that is possible, or use fewer rules")
}

fn large_burst(rule: &RuleSpec, field: &str) -> Option<Problem> {
    let limit = rule.limit.as_ref().filter(|limit| limit.is_gcra() && limit.requests > 0)?;
    let burst = limit.burst.filter(|burst| *burst > limit.requests)?;
    let worth = u128::from(burst) * u128::from(limit.window_ns) / u128::from(limit.requests);
    let seconds = worth / 1_000_000_000;
    (seconds > BURST_SECONDS).then(|| {
        let worth = Duration::from_nanos(u64::try_from(worth).unwrap_or(u64::MAX));
        let message = format!("a burst of {burst} is what the rate gives back in {worth:?}");
        Problem::warning("large-burst", rule.at, within(field, "limit.burst"), message)
            .help("a caller may send all of it at once, and again after so long; lower `burst`, or leave it out")
    })
}

fn never_matches(rule: &RuleSpec, field: &str) -> Option<Problem> {
    let contradicts = |matcher: &Matcher| {
        !matcher.any.is_empty()
            && matcher.any.iter().all(|pattern| matcher.none.iter().any(|none| covers(none, pattern)))
    };
    let endpoint_contradicts = |matcher: &EndpointMatcher| {
        !matcher.any.is_empty() && matcher.any.iter().all(|pattern| matcher.none.contains(pattern))
    };
    let attribute =
        rule.matches.attributes.iter().find(|(_, matcher)| contradicts(matcher)).map(|(name, _)| name.as_str());
    let endpoint = rule.matches.endpoint.as_ref().filter(|matcher| endpoint_contradicts(matcher)).map(|_| "endpoint");
    let name = attribute.or(endpoint)?;
    let message = format!("this rule can never match: everything `{name}` wants, it also refuses");
    let problem = Problem::warning("never-matches", rule.at, within(field, &format!("match.{name}")), message);
    Some(problem.help("remove the `!` pattern, or the rule"))
}

/// Whether every value of `inner` matches `outer`; `false` if that is not obvious.
fn covers(outer: &Pattern, inner: &Pattern) -> bool {
    match (outer, inner) {
        (Pattern::Any, _) => true,
        (outer, Pattern::Exact(text)) => outer.matches(text),
        (Pattern::Prefix(outer), Pattern::Prefix(inner)) => inner.starts_with(outer.as_str()),
        (Pattern::Cidr(outer), Pattern::Cidr(inner)) => {
            outer.prefix_len <= inner.prefix_len && outer.contains(inner.addr)
        }
        (outer, inner) => outer == inner,
    }
}

fn cost_never_fits(rule: &RuleSpec, field: &str) -> Option<Problem> {
    let capacity = rule.limit.as_ref().filter(|limit| !limit.blocks())?.capacity();
    let cost = rule.cost.highest();
    (cost > capacity).then(|| {
        let message =
            format!("a cost of {cost} never fits into a limit of {capacity}: such a request is always denied");
        Problem::warning("cost-never-fits", rule.at, within(field, "cost"), message)
            .help("lower the cost, or raise `requests` or `burst`")
    })
}

fn always_exempted(competing: &CompetingRules<'_>, rule: &RuleSpec, field: &str) -> Option<Problem> {
    let exempts = |by: &RuleSpec| {
        let named = rule.name.as_ref().is_some_and(|name| by.replaces.contains(name));
        let all = by.unlimited && by.replaces.is_empty() && !rule.unlimited;
        !std::ptr::eq(by, rule) && (named || all) && includes(&by.matches, &rule.matches)
    };
    let by = competing.exempting(exempts)?;
    let message = format!("this rule never applies: {} exempts everything it matches", title(by));
    Some(Problem::warning("always-exempted", rule.at, field, message).help("narrow the other rule, or remove this one"))
}

/// A rule is shadowed if another one applies to all its requests, counts by the same key, and is never looser: it then
/// never denies a request that the other allows.
fn shadowed<'a>(competing: &CompetingRules<'a>, number: usize, rule: &'a RuleSpec, field: &str) -> Option<Problem> {
    let limit = rule.limit.as_ref()?;
    let shadows = |place: usize, by: &RuleSpec| {
        place != number
            && by.missing == rule.missing
            && by.cost == rule.cost
            && by.meter == rule.meter
            && by.unmetered == rule.unmetered
            && includes(&by.matches, &rule.matches)
            && by.limit.as_ref().is_some_and(|stricter| never_looser(stricter, limit, place < number))
    };
    let by = competing.find(rule, shadows)?;
    let message = format!("this rule can never decide: {} is stricter wherever it applies", title(by));
    Some(
        Problem::warning("shadowed-rule", rule.at, field, message)
            .help("remove it, or make it stricter than the other"),
    )
}

/// Whether `a` denies everything that `b` denies. Of two equal limits only the later one is shadowed.
fn never_looser(a: &LimitSpec, b: &LimitSpec, a_first: bool) -> bool {
    let same_kind = (a.is_gcra() && b.is_gcra())
        || (a.algorithm == b.algorithm && a.is_queue() == b.is_queue() && a.align == b.align && !a.is_queue());
    let rate = |limit: &LimitSpec, other: &LimitSpec| u128::from(limit.requests) * u128::from(other.window_ns.max(1));
    let (slower, smaller) = (rate(a, b) <= rate(b, a), a.capacity() <= b.capacity());
    let comparable = a.is_gcra()
        || (a.window_ns == b.window_ns && a.slot_ttl_ns == b.slot_ttl_ns && a.quota == b.quota)
            && a.reserved == b.reserved;
    let equal = rate(a, b) == rate(b, a) && a.capacity() == b.capacity();
    same_kind && comparable && slower && smaller && (a_first || !equal)
}

/// Whether every request that matches `inner` matches `outer`: `inner` has each condition of `outer`, or a narrower
/// one.
fn includes(outer: &MatchSpec, inner: &MatchSpec) -> bool {
    let same = |(name, matcher): &(String, Matcher)| {
        let own = inner.attributes.iter().find(|(own, _)| own == name).map(|(_, own)| own);
        own.is_some_and(|own| own == matcher || matcher.is_any() || narrower(own, matcher))
    };
    let endpoint = match (&outer.endpoint, &inner.endpoint) {
        (None, _) => true,
        (Some(outer), Some(inner)) => outer == inner || outer.is_any(),
        (Some(_), None) => false,
    };
    outer.attributes.iter().all(same) && endpoint
}

fn narrower(inner: &Matcher, outer: &Matcher) -> bool {
    let wanted = |pattern: &Pattern| outer.any.is_empty() || outer.any.iter().any(|outer| covers(outer, pattern));
    outer.none.iter().all(|none| inner.none.contains(none)) && !inner.any.is_empty() && inner.any.iter().all(wanted)
}

fn misspelt_attributes(rule: &RuleSpec, field: &str) -> Vec<Problem> {
    let matched = rule.matches.attributes.iter().map(|(name, _)| (name, "match"));
    let keyed = rule.key_by.iter().flat_map(|key| key.parts.iter().flatten()).map(|name| (name, "key_by"));
    matched.chain(keyed).filter_map(|(name, part)| misspelt(name, rule.at, within(field, part))).collect()
}

/// Checks the `key_by` of the file.
fn misspelt_key(file: &RuleFile) -> Vec<Problem> {
    let keyed = file.key_by.iter().flat_map(|key| key.parts.iter().flatten());
    keyed.filter_map(|name| misspelt(name, SourcePosition::default(), "key_by".to_owned())).collect()
}

fn misspelt(name: &str, at: SourcePosition, field: String) -> Option<Problem> {
    if KNOWN_ATTRIBUTES.contains(&name) {
        return None;
    }
    // Common names for the address of a caller; spelled correctly, they may be custom attributes.
    let address = || nearest(name, ADDRESSES).filter(|_| !ADDRESSES.contains(&name)).map(|_| "ip");
    let short = || SHORT.iter().find(|(short, _)| *short == name).map(|(_, meant)| *meant);
    let meant = nearest(name, KNOWN_ATTRIBUTES).or_else(address).or_else(short)?;
    let message = format!("`{name}` is an attribute of its own, which no caller sends unless it was agreed upon");
    let problem = Problem::warning("unknown-attribute", at, field, message);
    Some(problem.help(format!("did you mean `{meant}`?")))
}

fn title(rule: &RuleSpec) -> String {
    match &rule.name {
        Some(name) => format!("`{name}`"),
        None => format!("the rule in line {}", rule.at.line),
    }
}

#[cfg(test)]
mod tests;
