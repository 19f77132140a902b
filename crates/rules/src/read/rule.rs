//! Reads one rule.

use super::field::FieldValue;
use super::fields::MapFields;
use super::limit::read_limit;
use super::matching::{Spelling, read_key_by, read_match};
use super::meter::read_meter;
use super::penalty::read_penalty;
use super::quota::read_quota;
use crate::check;
use crate::path::PathCase;
use crate::problem::Problems;
use crate::spec::{
    Consistency, Cost, CostCase, Enforcement, LeaseSpec, MatchSpec, Missing, OnFail, RuleSpec, SoftSpec, Unmetered,
};
use crate::yaml::YamlKind;

/// Fields of a rule, in the order in which the formatter writes them.
pub const RULE_FIELDS: &[&str] = &[
    "name",
    "description",
    "resource",
    "match",
    "case",
    "key_by",
    "missing",
    "meter",
    "unmetered",
    "limit",
    "quota",
    "unlimited",
    "replaces",
    "cost",
    "mode",
    "consistency",
    "lease",
    "on_fail",
    "count_denied",
    "accept_limits",
    "penalty",
    "max_debt",
    "soft",
    "shards",
    "max_memory",
    "doc_url",
    "error_code",
];

/// Fields of a cost case, in canonical order.
pub(crate) const COST_FIELDS: &[&str] = &["match", "cost"];

pub(super) const CASES: [(&str, PathCase); 2] =
    [("sensitive", PathCase::Sensitive), ("insensitive", PathCase::Insensitive)];
pub(super) const ON_FAIL: [(&str, OnFail); 3] =
    [("allow", OnFail::Allow), ("deny", OnFail::Deny), ("local", OnFail::Local)];
const MODES: [(&str, Enforcement); 3] =
    [("enforce", Enforcement::Enforce), ("shadow", Enforcement::Shadow), ("off", Enforcement::Off)];
const CONSISTENCIES: [(&str, Consistency); 4] = [
    ("exact", Consistency::Exact),
    ("leased", Consistency::Leased),
    ("async", Consistency::Async),
    ("local", Consistency::Local),
];
const UNMETERED: [(&str, Unmetered); 2] = [("skip", Unmetered::Skip), ("reject", Unmetered::Reject)];
const MISSING: [(&str, Missing); 2] = [("skip", Missing::Skip), ("share", Missing::Share)];

/// Reads a rule; fields with problems keep their defaults.
pub(crate) fn read_rule(value: FieldValue<'_>, file: Spelling, problems: &mut Problems) -> RuleSpec {
    let fields = value.fields(RULE_FIELDS, "- limit: { requests: 10, window: 1s }", problems);
    let mut rule = RuleSpec { at: value.position(), ..RuleSpec::default() };
    read_texts(&fields, &mut rule, problems);
    rule.case = fields.get("case").and_then(|value| value.choice(&CASES, problems));
    let spelling = Spelling { case: rule.case.unwrap_or(file.case), ..file };
    if let Some(value) = fields.get("match") {
        rule.matches = read_match(&value, spelling, problems);
    }
    rule.key_by = fields.get("key_by").and_then(|value| read_key_by(&value, problems));
    rule.unlimited = flag(&fields, "unlimited", problems);
    rule.limit = match (fields.get("limit"), fields.get("quota")) {
        (Some(value), None) => read_limit(value, problems),
        (None, Some(value)) => read_quota(value, problems),
        (Some(_), Some(quota)) => {
            let before = problems.len();
            let _ = read_quota(quota, problems);
            if problems.len() == before {
                let message = format!("{} has both `limit` and `quota`", value.path.title());
                problems.push(quota.problem("misplaced-field", message).help("make them two rules: both will apply"));
            }
            None
        }
        (None, None) => {
            if !rule.unlimited {
                let help = "add `limit: { requests: 10, window: 1s }`, or `unlimited: true` to exempt what it matches";
                fields.required("limit", help, problems);
            }
            None
        }
    };
    if let Some(value) = fields.get("meter") {
        rule.meter = read_meter(&value, problems);
    }
    if let Some(value) = fields.get("cost") {
        rule.cost = read_cost(&value, spelling, problems);
    }
    read_policy(&fields, &mut rule, problems);
    // A clone has no spare capacity: a list of one that grew by `push` has room for four, and there may be 50,000
    // rules.
    rule.clone()
}

fn read_texts(fields: &MapFields<'_>, rule: &mut RuleSpec, problems: &mut Problems) {
    let mut text = |name| fields.get(name).and_then(|value| value.text(problems)).map(str::to_owned);
    rule.name = text("name");
    rule.description = text("description");
    rule.resource = text("resource");
    rule.doc_url = text("doc_url");
    rule.error_code = text("error_code");
    if let Some(value) = fields.get("replaces") {
        rule.replaces = value.one_or_more().iter().filter_map(|item| item.text(problems)).map(str::to_owned).collect();
    }
}

fn read_policy(fields: &MapFields<'_>, rule: &mut RuleSpec, problems: &mut Problems) {
    rule.mode = fields.get("mode").and_then(|value| value.choice(&MODES, problems)).unwrap_or_default();
    rule.consistency =
        fields.get("consistency").and_then(|value| value.choice(&CONSISTENCIES, problems)).unwrap_or_default();
    rule.on_fail = fields.get("on_fail").and_then(|value| value.choice(&ON_FAIL, problems));
    rule.missing = fields.get("missing").and_then(|value| value.choice(&MISSING, problems)).unwrap_or_default();
    rule.unmetered = fields.get("unmetered").and_then(|value| value.choice(&UNMETERED, problems)).unwrap_or_default();
    rule.count_denied = flag(fields, "count_denied", problems);
    rule.accept_limits = flag(fields, "accept_limits", problems);
    rule.max_debt = fields.get("max_debt").and_then(|value| value.integer(0..=check::REQUESTS_MAX, problems));
    rule.soft =
        fields.get("soft").and_then(|value| value.percent(1..=1000, problems)).map(|percent| SoftSpec { percent });
    rule.shards = fields
        .get("shards")
        .and_then(|value| value.integer(1..=u64::from(check::SHARDS_MAX), problems))
        .and_then(|shards| u32::try_from(shards).ok())
        .unwrap_or(1);
    rule.max_memory = fields
        .get("max_memory")
        .and_then(|value| value.percent(1..=100, problems))
        .and_then(|percent| u8::try_from(percent).ok());
    rule.penalty = fields.get("penalty").and_then(|value| read_penalty(value, problems));
    rule.lease = fields.get("lease").and_then(|value| read_lease(value, problems));
}

pub(super) fn flag(fields: &MapFields<'_>, name: &'static str, problems: &mut Problems) -> bool {
    fields.get(name).and_then(|value| value.boolean(problems)).unwrap_or(false)
}

fn read_lease(value: FieldValue<'_>, problems: &mut Problems) -> Option<LeaseSpec> {
    let fields = value.fields(&["tokens", "seconds"], "lease: { tokens: 100 }", problems);
    match (fields.get("tokens"), fields.get("seconds")) {
        (Some(tokens), None) => tokens.integer(1..=check::BURST_MAX, problems).map(LeaseSpec::Tokens),
        (None, Some(seconds)) => seconds.integer(1..=3600, problems).map(LeaseSpec::Seconds),
        _ => {
            if fields.known() {
                let message = format!("{} should have one of `tokens` and `seconds`", value.path);
                let help = "write `lease: { tokens: 100 }` or `lease: { seconds: 2 }`";
                problems.push(value.problem("missing-field", message).help(help));
            }
            None
        }
    }
}

fn read_cost(value: &FieldValue<'_>, spelling: Spelling, problems: &mut Problems) -> Cost {
    if !matches!(value.node.kind, YamlKind::List(_)) {
        return value.integer(0..=check::COST_MAX, problems).map(Cost::Fixed).unwrap_or_default();
    }
    let items = value.one_or_more();
    if items.is_empty() {
        let help = "write a number, or a list of `{ match, cost }`";
        problems.push(value.problem("blank", format!("{} is an empty list", value.path)).help(help));
    }
    let last = items.len().saturating_sub(1);
    let mut cases = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let case = read_case(item, spelling, problems);
        if index < last && case.matches == MatchSpec::default() {
            let message = format!("{} has no `match`, so the cases after it are never reached", item.path);
            problems
                .push(item.problem("unreachable-cost", message).help("move the default to the end, or add `match`"));
        }
        cases.push(case);
    }
    Cost::ByMatch(cases)
}

fn read_case(item: FieldValue<'_>, spelling: Spelling, problems: &mut Problems) -> CostCase {
    let fields = item.fields(COST_FIELDS, "{ match: { ... }, cost: 10 }", problems);
    let matches = fields.get("match").map(|value| read_match(&value, spelling, problems)).unwrap_or_default();
    let cost = fields.required("cost", "write `{ match: { ... }, cost: 10 }`", problems);
    let cost = cost.and_then(|value| value.integer(0..=check::COST_MAX, problems)).unwrap_or(1);
    CostCase { matches, cost }
}
