//! Checks rules, clients and overrides from any source.
//!
//! A problem found here has a field and no line; a caller that has the text adds the line. The bounds come from
//! RELIABILITY J11 to J14 and from integer time, which cannot represent less than 1 µs per unit or more than 2^63 ns
//! per bucket.

mod across;
mod grant;
mod limit;
mod name;
mod plan;
mod rule_names;
mod unusable;

use std::ops::RangeInclusive;

pub use crate::literal::CROWD_MAX;
use crate::position::SourcePosition;
use crate::problem::{Problem, quote};
use crate::spec::{
    ClientSpec, Consistency, Enforcement, LimitAlgorithm, LimitSpec, MeterSpec, OverrideSpec, RuleFile, RuleSpec,
    Unmetered,
};

pub use across::{CROWDED, across, crowded, wildcards};
pub(crate) use grant::grant;
pub(crate) use name::case_duplicates;
pub use name::{RULE_NAME_MAX, is_rule_name, nearest_rule_name, rule_name_help};
pub(crate) use plan::plan;
pub use plan::{UNKNOWN_PLAN, plans};
pub use unusable::{CROSS_RULE_CODES, unusable_rules};

/// Largest number of units per window.
pub const REQUESTS_MAX: u64 = 1 << 53;
/// Largest burst.
pub const BURST_MAX: u64 = 1_000_000_000;
/// Largest number of requests in flight.
pub const SLOTS_MAX: u64 = 1_000_000;
/// Highest cost of a request.
pub const COST_MAX: u64 = (1 << 53) - 1;
/// Most meters of one rule, and of one request.
pub const METERS_MAX: usize = 16;
/// Highest weight of a meter.
pub const WEIGHT_MAX: u64 = 1_000_000;
/// Largest number of requests in a sliding log.
pub const LOG_MAX: u64 = 10_000;
/// Largest number of shards of a key.
pub const SHARDS_MAX: u32 = 1024;
/// Windows, delays and slot lifetimes: 1 ms to 366 d.
pub const WINDOW_NS: RangeInclusive<u64> = 1_000_000..=366 * 86_400_000_000_000;
/// Bits of an IPv6 address that may identify a client.
pub const IPV6_PREFIX: RangeInclusive<u64> = 32..=128;

/// All problems of a file that was read.
pub fn check(file: &RuleFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, spec) in file.rules.iter().enumerate().filter(|(_, spec)| spec.plan.is_none()) {
        problems.extend(rule(spec, format!("rules[{index}]"), file.allow_block_all));
    }
    problems.extend(plans(&file.plans));
    for (index, spec) in file.clients.iter().enumerate() {
        problems.extend(client(spec, format!("clients[{index}]")));
    }
    for (index, spec) in file.overrides.iter().enumerate() {
        problems.extend(change(spec, format!("overrides[{index}]")));
    }
    for (index, spec) in file.grants.iter().enumerate() {
        problems.extend(grant(spec, format!("grants[{index}]")));
    }
    problems.extend(across(file));
    problems.extend(case_duplicates(file));
    problems
}

/// Problems of one rule by itself; `root` is its path.
pub(crate) fn rule(rule: &RuleSpec, root: String, allow_block_all: bool) -> Vec<Problem> {
    let mut found = ProblemCollector { root, at: rule.at, problems: Vec::new() };
    if let Some(name) = rule.name.as_ref().filter(|name| !is_rule_name(name)) {
        found.add("bad-name", "name", format!("{} cannot be a name", quote(name)), &rule_name_help(name));
    }
    if let Some(name) = rule.resource.as_ref().filter(|name| !is_label(name)) {
        found.add("bad-name", "resource", format!("{} cannot be a resource", quote(name)), LABEL_HELP);
    }
    if let Some(url) = rule.doc_url.as_ref().filter(|url| !is_url(url)) {
        let help = "write an address such as https://example.com/limits, in printable ASCII, at most 2048 bytes";
        found.add("bad-url", "doc_url", format!("{} is not a web address", quote(url)), help);
    }
    if let Some(code) = rule.error_code.as_ref().filter(|code| !is_code(code)) {
        let help = "use 1 to 64 of a-z, 0-9, `_`, `.` and `-`, such as `search.too_many`";
        found.add("bad-name", "error_code", format!("{} cannot be an error_code", quote(code)), help);
    }
    meter(rule, &mut found);
    match &rule.limit {
        Some(_) if rule.unlimited => {
            let help = "remove one of them: an unlimited rule exempts, it does not count";
            found.add("misplaced-field", "limit", "an unlimited rule has a limit".to_owned(), help);
        }
        None if !rule.unlimited => {
            let help = "add `limit: { requests: 10, window: 1s }`, or `unlimited: true` to exempt what it matches";
            found.add("missing-field", "", "the rule has no `limit`".to_owned(), help);
        }
        Some(spec) => {
            limit::check(spec, &mut found);
            policy(rule, spec, &mut found);
            if spec.blocks() && rule.mode == Enforcement::Enforce && rule.matches.is_wide_open() && !allow_block_all {
                let help =
                    "narrow its `match`, use `mode: shadow`, or write `allow_block_all: true` at the top of the file";
                found.add("block-all", "limit", "the rule refuses every request".to_owned(), help);
            }
        }
        None => {}
    }
    found.problems
}

/// Checks what a rule counts.
fn meter(rule: &RuleSpec, found: &mut ProblemCollector) {
    let counts = match &rule.limit {
        Some(limit) if limit.algorithm == LimitAlgorithm::Concurrency => "counts slots",
        None if rule.unlimited => "counts nothing",
        _ => "",
    };
    if rule.meter != MeterSpec::Requests && !counts.is_empty() {
        let message = format!("a rule that {counts} has a meter");
        found.add("misplaced-field", "meter", message, "remove it; meters are for limits that count over time");
    }
    if rule.unmetered == Unmetered::Reject && rule.meter == MeterSpec::Requests {
        let help = "remove it, or add `meter`: every request carries the meter `requests`";
        found.add("misplaced-field", "unmetered", "the rule counts requests".to_owned(), help);
    }
}

/// Checks the options that not every limit supports.
fn policy(rule: &RuleSpec, spec: &LimitSpec, found: &mut ProblemCollector) {
    let ahead = matches!(rule.consistency, Consistency::Leased | Consistency::Async);
    if ahead && !(spec.is_gcra() || spec.algorithm == LimitAlgorithm::FixedWindow) {
        let form = if spec.is_queue() { " as a queue" } else { "" };
        let message = format!("{}{form} cannot be {}", spec.algorithm.name(), rule.consistency.name());
        let help = "use `exact` or `local`; leased and async are for token_bucket, gcra, leaky_bucket without max_delay, and fixed_window";
        found.add("bad-consistency", "consistency", message, help);
    }
    if rule.accept_limits
        && (ahead || rule.shards > 1 || matches!(spec.algorithm, LimitAlgorithm::Concurrency | LimitAlgorithm::Quota))
    {
        let message = "a limit that requests bring along does not go with slots, shards, or tokens taken in advance";
        let help = "remove `accept_limits`, or use `consistency: exact` without shards and another algorithm";
        found.add("misplaced-field", "accept_limits", message.to_owned(), help);
    }
    if spec.algorithm == LimitAlgorithm::Quota && rule.consistency == Consistency::Local {
        let help = "remove it: a node cannot keep its share of a month when the number of nodes changes";
        found.add("bad-consistency", "consistency", "a quota cannot be local".to_owned(), help);
    }
    if spec.algorithm == LimitAlgorithm::Quota {
        let misplaced = [("shards", rule.shards > 1), ("soft", rule.soft.is_some())];
        for (name, _) in misplaced.into_iter().filter(|(_, is_given)| *is_given) {
            let message = format!("a quota cannot have `{name}`");
            found.add("misplaced-field", name, message, "remove it; a quota is counted in one bucket, to the unit");
        }
    }
    if rule.lease.is_some() && rule.consistency != Consistency::Leased {
        let message = format!("`lease` is for `consistency: leased`, and this rule is {}", rule.consistency.name());
        found.add("misplaced-field", "lease", message, "remove it, or write `consistency: leased`");
    }
    if rule.soft.is_some() && (spec.is_queue() || spec.algorithm == LimitAlgorithm::Concurrency) {
        let form = if spec.is_queue() { " as a queue" } else { "" };
        let message = format!("{}{form} cannot be soft", spec.algorithm.name());
        found.add("misplaced-field", "soft", message, "remove `soft`; it needs a limit that counts requests over time");
    }
    if rule.penalty.is_some()
        && (ahead
            || rule.shards > 1
            || rule.count_denied
            || rule.accept_limits
            || spec.is_queue()
            || spec.algorithm == LimitAlgorithm::Concurrency)
    {
        let message = "a penalty does not go with slots, queues, shards, `count_denied`, `accept_limits`, or tokens taken in advance";
        let help = "remove `penalty`, or make it a rule of its own with `consistency: exact`";
        found.add("misplaced-field", "penalty", message.to_owned(), help);
    }
    if !(1..=SHARDS_MAX).contains(&rule.shards) {
        found.add("out-of-range", "shards", format!("{} shards", rule.shards), &format!("allowed: 1 to {SHARDS_MAX}"));
    } else if rule.shards > 1 && !spec.blocks() {
        shares(rule, spec, found);
    }
    if rule.cost.highest() > COST_MAX {
        found.add("out-of-range", "cost", "the cost is too high".to_owned(), &format!("allowed: 0 to {COST_MAX}"));
    }
}

fn shares(rule: &RuleSpec, spec: &LimitSpec, found: &mut ProblemCollector) {
    let shards = u64::from(rule.shards);
    let smallest = match spec.algorithm {
        LimitAlgorithm::Concurrency => spec.slots,
        _ => spec.requests.min(spec.capacity()),
    };
    if smallest / shards == 0 {
        let message = format!("{shards} shards of a limit of {smallest} leave some without any");
        found.add("bad-shards", "shards", message, &format!("use at most {smallest} shards"));
    } else if rule.cost.highest() > spec.capacity() / shards {
        let message =
            format!("a cost of {} never fits into one of {shards} shards of {}", rule.cost.highest(), spec.capacity());
        found.add("bad-shards", "shards", message, "use fewer shards, a larger limit or a lower cost");
    }
}

/// Problems of one client by itself.
pub(crate) fn client(client: &ClientSpec, root: String) -> Vec<Problem> {
    let mut found = ProblemCollector { root, at: client.at, problems: Vec::new() };
    found.client_key(&client.client_key);
    found.problems
}

/// Problems of one override by itself.
pub(crate) fn change(change: &OverrideSpec, root: String) -> Vec<Problem> {
    let mut found = ProblemCollector { root, at: change.at, problems: Vec::new() };
    found.client_key(&change.client_key);
    let numbers = change.requests.is_some() || change.burst.is_some();
    if numbers == change.unlimited {
        let message = match numbers {
            true => "the override is unlimited and has numbers",
            false => "the override changes nothing",
        };
        let help = "give `requests`, `burst` or both, or else `unlimited: true`";
        found.add("bad-override", "", message.to_owned(), help);
    }
    if change.is_of_every_rule() && numbers {
        let message = "an override of all rules has numbers".to_owned();
        let help = "rules count different things: name one rule, or write `unlimited: true` to exempt the client";
        found.add("bad-override", "rule", message, help);
    }
    if let (Some(from), Some(until)) = (change.valid_from_ns, change.valid_until_ns)
        && from >= until
    {
        let message = "the override ends before it starts".to_owned();
        found.add("bad-time", "valid_until", message, "`valid_until` must be later than `valid_from`");
    }
    found.problems
}

/// What [`is_label`] accepts, in words.
pub const LABEL_HELP: &str = "use 1 to 128 printable ASCII characters without `\"` and `\\`";
const CLIENT_HELP: &str = "use 1 to 1024 bytes without control characters, such as `key:abc` or `user:42`";

/// Whether a text can be a label, such as a namespace or a resource. Labels appear in headers and metrics. Names of
/// rules are narrower: [`is_rule_name`].
pub fn is_label(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.trim() == name
        && name.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\')
}

fn is_client_key(key: &str) -> bool {
    (1..=1024).contains(&key.len()) && !key.chars().any(char::is_control)
}

fn is_url(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty())
        && url.len() <= 2048
        && url.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\'))
}

/// Callers compare codes, so a code has one spelling.
fn is_code(code: &str) -> bool {
    (1..=64).contains(&code.len())
        && code.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-'))
}

/// Collects the problems of one rule, client or override at `root`, which is empty for an entry alone.
struct ProblemCollector {
    root: String,
    at: SourcePosition,
    problems: Vec<Problem>,
}

impl ProblemCollector {
    fn add(&mut self, code: &'static str, field: &str, message: String, help: &str) {
        let dot = if self.root.is_empty() || field.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{field}", self.root);
        let message = if path.is_empty() { message } else { format!("{path}: {message}") };
        self.problems.push(Problem::error(code, self.at, path, message).help(help));
    }

    fn client_key(&mut self, key: &str) {
        if !is_client_key(key) {
            self.add("bad-name", "client_key", format!("{} cannot be a client key", quote(key)), CLIENT_HELP);
        }
    }
}

#[cfg(test)]
mod tests;
