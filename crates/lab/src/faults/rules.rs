//! The rules of the fault matrix: one of each algorithm and policy, each with an endpoint of its name.

use tollgate_testkit::LimitConfig;
use tollgate_testkit::checker::{Keyed, Promise};

const SECOND: u64 = 1_000_000_000;

/// A rule: its text and its bounds.
#[derive(Clone, Debug)]
pub struct FaultRule {
    /// Its name, and its endpoint.
    pub name: &'static str,
    /// Its YAML after the name and the match.
    pub text: &'static str,
    /// Its limit.
    pub limit: LimitConfig,
    /// Whose requests share a bucket.
    pub keyed: Keyed,
    /// The most that one node may hold in leases; zero if it takes none.
    pub lease: u64,
}

const fn window(limit: u64, seconds: u64) -> LimitConfig {
    LimitConfig::FixedWindow { limit, window: seconds * SECOND, offset: 0 }
}

const fn bucket(count: u64, burst: u64) -> LimitConfig {
    LimitConfig::Gcra { count, period: SECOND, burst, max_debt: 0, clamp: true }
}

const fn rule(name: &'static str, text: &'static str, limit: LimitConfig) -> FaultRule {
    FaultRule { name, text, limit, keyed: Keyed::Caller, lease: 0 }
}

/// Exact rules of every algorithm, and one for each policy while the store is unavailable.
pub const EXACT: &[FaultRule] = &[
    rule("window", "limit: { requests: 50, window: 2s, algorithm: fixed_window }", window(50, 2)),
    rule("bucket", "limit: { requests: 50, window: 1s, algorithm: token_bucket, burst: 25 }", bucket(50, 25)),
    rule(
        "log",
        "limit: { requests: 40, window: 1s, algorithm: sliding_window_log }",
        LimitConfig::SlidingLog { limit: 40, window: SECOND },
    ),
    rule(
        "counter",
        "limit: { requests: 60, window: 2s, algorithm: sliding_window_counter }",
        LimitConfig::SlidingCounter { limit: 60, window: 2 * SECOND, offset: 0 },
    ),
    rule("closed", "on_fail: deny\n    limit: { requests: 30, window: 1s, algorithm: fixed_window }", window(30, 1)),
    rule("open", "on_fail: allow\n    limit: { requests: 30, window: 1s, algorithm: fixed_window }", window(30, 1)),
];

/// Leased and asynchronous rules, and one bucket that all callers share.
pub const SHARED: &[FaultRule] = &[
    FaultRule {
        lease: 20,
        ..rule(
            "leased",
            "consistency: leased\n    lease: { tokens: 20 }\n    limit: { requests: 300, window: 1s, algorithm: token_bucket, burst: 100 }",
            bucket(300, 100),
        )
    },
    FaultRule {
        lease: 20,
        ..rule(
            "leased-window",
            "consistency: leased\n    lease: { tokens: 20 }\n    limit: { requests: 200, window: 2s, algorithm: fixed_window }",
            window(200, 2),
        )
    },
    rule(
        "async",
        "consistency: async\n    limit: { requests: 100, window: 1s, algorithm: fixed_window }",
        window(100, 1),
    ),
    FaultRule {
        keyed: Keyed::Everyone,
        ..rule(
            "everyone",
            "key_by: global\n    limit: { requests: 200, window: 1s, algorithm: token_bucket, burst: 50 }",
            bucket(200, 50),
        )
    },
];

/// Concurrency slots, which have endpoints of their own.
pub const SLOTS: FaultRule = rule(
    "slots",
    "limit: { algorithm: concurrency, slots: 5, slot_ttl: 2s }",
    LimitConfig::Concurrency { slots: 5, ttl: 2 * SECOND },
);

/// A limit that is never reached, for counting what was charged.
pub const TALLY: FaultRule =
    rule("tally", "limit: { requests: 1000000, window: 1h, algorithm: fixed_window }", window(1_000_000, 3600));

/// The rules as a file.
pub fn file(rules: &[FaultRule]) -> String {
    let mut text = "version: 1\nkey_by: client_key\non_fail: local\nrules:\n".to_owned();
    for FaultRule { name, text: body, .. } in rules {
        text.push_str(&format!("  - name: {name}\n    match: {{ endpoint: \"/{name}\" }}\n    {body}\n"));
    }
    text
}

/// The bounds of the rules in a fleet of this many nodes.
pub fn promises(rules: &[FaultRule], nodes: u64) -> Vec<Promise> {
    let promise = |rule: &FaultRule| Promise {
        keyed: rule.keyed,
        nodes,
        leased: rule.lease * nodes,
        ..Promise::new(rule.name, rule.limit)
    };
    rules.iter().map(promise).collect()
}
