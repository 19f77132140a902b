//! Reads `limit`: the fields of each algorithm.

use super::field::FieldValue;
use super::fields::MapFields;
use super::quota::QUOTA_FIELDS;
use crate::check;
use crate::problem::{Problem, Problems};
use crate::spec::{Align, LimitAlgorithm, LimitSpec, ReservedSlots};

/// Fields of a limit, in canonical order.
pub const LIMIT_FIELDS: &[&str] = &[
    "requests",
    "amount",
    "window",
    "algorithm",
    "burst",
    "slots",
    "slot_ttl",
    "reserved",
    "reserved_for",
    "max_delay",
    "align",
];

const ALGORITHMS: [(&str, LimitAlgorithm); 8] = [
    ("token_bucket", LimitAlgorithm::TokenBucket),
    ("gcra", LimitAlgorithm::Gcra),
    ("leaky_bucket", LimitAlgorithm::LeakyBucket),
    ("fixed_window", LimitAlgorithm::FixedWindow),
    ("sliding_window_log", LimitAlgorithm::SlidingWindowLog),
    ("sliding_window_counter", LimitAlgorithm::SlidingWindowCounter),
    ("sliding_window", LimitAlgorithm::SlidingWindowCounter),
    ("concurrency", LimitAlgorithm::Concurrency),
];

/// Reads the map under `limit`; `None` after a problem.
pub(super) fn read_limit(value: FieldValue<'_>, problems: &mut Problems) -> Option<LimitSpec> {
    let before = problems.len();
    let fields = value.fields(LIMIT_FIELDS, "limit: { requests: 10, window: 1s }", problems);
    let algorithm = match fields.get("algorithm") {
        Some(value) => value.choice(&ALGORITHMS, problems),
        None => Some(LimitAlgorithm::default()),
    };
    let queue = algorithm == Some(LimitAlgorithm::LeakyBucket) && fields.get("max_delay").is_some();
    if let Some(algorithm) = algorithm {
        reject_foreign_fields(&fields, algorithm, queue, problems);
    }
    let limit = read_numbers(&fields, algorithm.unwrap_or_default(), problems);
    (problems.len() == before && fields.known()).then_some(limit)
}

/// The fields of an algorithm, the required ones first.
fn own_fields(algorithm: LimitAlgorithm, queue: bool) -> &'static [&'static str] {
    match algorithm {
        LimitAlgorithm::LeakyBucket if queue => &["requests", "window", "max_delay"],
        LimitAlgorithm::LeakyBucket => &["requests", "window", "burst", "max_delay"],
        LimitAlgorithm::TokenBucket | LimitAlgorithm::Gcra => &["requests", "window", "burst"],
        LimitAlgorithm::FixedWindow | LimitAlgorithm::SlidingWindowCounter => &["requests", "window", "align"],
        LimitAlgorithm::SlidingWindowLog => &["requests", "window"],
        LimitAlgorithm::Concurrency => &["slots", "slot_ttl", "reserved", "reserved_for"],
        LimitAlgorithm::Quota => QUOTA_FIELDS,
    }
}

/// `amount` is another spelling of `requests`, for meters that do not count requests.
fn spelled(name: &str) -> &str {
    if name == "amount" { "requests" } else { name }
}

fn reject_foreign_fields(fields: &MapFields<'_>, algorithm: LimitAlgorithm, queue: bool, problems: &mut Problems) {
    let own = own_fields(algorithm, queue);
    for name in LIMIT_FIELDS.iter().filter(|name| **name != "algorithm" && !own.contains(&spelled(name))) {
        if let Some(value) = fields.get(name) {
            problems.push(misplaced_field(&value, name, algorithm, queue));
        }
    }
}

fn misplaced_field(value: &FieldValue<'_>, name: &str, algorithm: LimitAlgorithm, queue: bool) -> Problem {
    let form = if queue { " with `max_delay` (a queue)" } else { "" };
    let message = format!("{} does not belong to {}{form}", value.path, algorithm.name());
    let owners: Vec<&str> = LimitAlgorithm::ALL
        .iter()
        .filter(|other| own_fields(**other, false).contains(&spelled(name)))
        .map(|other| other.name())
        .collect();
    let help = format!(
        "remove it; {}{form} takes {}. `{name}` is for {}",
        algorithm.name(),
        own_fields(algorithm, queue).join(", "),
        owners.join(", ")
    );
    value.problem("misplaced-field", message).help(help)
}

fn read_numbers(fields: &MapFields<'_>, algorithm: LimitAlgorithm, problems: &mut Problems) -> LimitSpec {
    let mut limit = LimitSpec { algorithm, ..LimitSpec::default() };
    let needed = |name| own_fields(algorithm, false).contains(&name);
    let help = |name: &str| match algorithm {
        LimitAlgorithm::Concurrency => "write for example `limit: { algorithm: concurrency, slots: 100 }`".to_owned(),
        _ => format!("add `{name}`, for example `limit: {{ requests: 10, window: 1s }}`"),
    };
    let amount = fields.get("amount").filter(|_| needed("requests"));
    if let (Some(amount), Some(_)) = (&amount, fields.get("requests")) {
        let message = format!("{} says the same as `requests`", amount.path);
        problems.push(amount.problem("duplicate-field", message).help("remove one of them"));
    }
    let mut number = |name, most| {
        let value = match (name, amount) {
            ("requests", Some(amount)) => Some(amount),
            _ if needed(name) => fields.required(name, &help(name), problems),
            _ => None,
        };
        value.and_then(|value| value.integer(0..=most, problems)).unwrap_or(0)
    };
    limit.requests = number("requests", check::REQUESTS_MAX);
    limit.slots = number("slots", check::SLOTS_MAX);
    if needed("window")
        && let Some(window) = fields.required("window", &help("window"), problems)
    {
        limit.window_ns = window.duration(check::WINDOW_NS, problems).unwrap_or(0);
    }
    if let Some(burst) = fields.get("burst").filter(|_| needed("burst")) {
        limit.burst = burst.integer(0..=check::BURST_MAX, problems).filter(|burst| *burst > 0);
    }
    if let Some(ttl) = fields.get("slot_ttl").filter(|_| needed("slot_ttl")) {
        limit.slot_ttl_ns = ttl.duration(check::WINDOW_NS, problems).unwrap_or(LimitSpec::SLOT_TTL_NS);
    }
    if needed("reserved") {
        limit.reserved = read_reserved(fields, problems);
    }
    if let Some(delay) = fields.get("max_delay").filter(|_| needed("max_delay")) {
        limit.max_delay_ns = delay.duration(check::WINDOW_NS, problems);
    }
    if let Some(align) = fields.get("align").filter(|_| needed("align")) {
        limit.align = align.choice(&[("clock", Align::Clock), ("key", Align::Key)], problems).unwrap_or_default();
    }
    limit
}

/// Longest name of a class of requests.
const CLASS_BYTES_MAX: usize = 64;

/// Each of the two fields is enough: the other has its default.
fn read_reserved(fields: &MapFields<'_>, problems: &mut Problems) -> Option<ReservedSlots> {
    let (share, class) = (fields.get("reserved"), fields.get("reserved_for"));
    if share.is_none() && class.is_none() {
        return None;
    }
    let mut reserved = ReservedSlots::default();
    if let Some(percent) = share.and_then(|value| value.percent(1..=100, problems)) {
        reserved.percent = percent;
    }
    if let Some(value) = class
        && let Some(text) = value.text(problems)
    {
        match (1..=CLASS_BYTES_MAX).contains(&text.len()) {
            true => text.clone_into(&mut reserved.class),
            false => {
                let message = format!("{} has {} bytes", value.path, text.len());
                problems.push(value.problem("out-of-range", message).help("name one class, such as critical"));
            }
        }
    }
    Some(reserved)
}
