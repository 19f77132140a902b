//! Valid files, and reports of mistakes.

use super::*;
use crate::samples::{DESIGN, FIRST, FULL};
use crate::spec::{
    Align, Consistency, Cost, Enforcement, LeaseSpec, LimitAlgorithm, LimitSpec, Missing, OnFail, RuleSpec, SoftSpec,
};
use crate::{KeyBy, Matcher, PathCase};

mod calendars;
mod meters;
mod reports;
mod rows;

const SECOND: u64 = 1_000_000_000;

fn good(text: &str) -> RuleFile {
    read("rules.yaml", text).unwrap_or_else(|report| panic!("{report}"))
}

fn only_rule(fields: &str) -> Result<RuleSpec, Report> {
    read("rules.yaml", &format!("rules:\n  - {fields}\n")).map(|mut file| file.rules.remove(0))
}

#[test]
fn the_first_file_loads_as_written() {
    let file = good(FIRST);
    assert_eq!((file.version, file.namespace.as_str(), file.ipv6_prefix), (1, "default", 64));
    assert_eq!(file.key_by, KeyBy::parse("api_key").ok());
    assert_eq!(file.on_fail, Some(OnFail::Allow));
    let limits: Vec<_> = file.rules.iter().filter_map(|rule| rule.limit.clone()).collect();
    assert_eq!(
        limits,
        [
            LimitSpec { requests: 10, window_ns: SECOND, burst: Some(20), ..LimitSpec::default() },
            LimitSpec {
                algorithm: LimitAlgorithm::SlidingWindowCounter,
                requests: 1000,
                window_ns: 3600 * SECOND,
                ..LimitSpec::default()
            },
            LimitSpec { requests: 100, window_ns: SECOND, burst: Some(200), ..LimitSpec::default() },
        ]
    );
    let first = &file.rules[0];
    assert_eq!((first.at.line, first.at.column), (2, 5));
    let mut free = Matcher::default();
    free.push("free").unwrap();
    assert_eq!(first.matches.attributes, [("tier".to_owned(), free)]);
    let endpoint = first.matches.endpoint.as_ref().unwrap();
    assert!(endpoint.matches(Some("POST"), "/api/x") && !endpoint.matches(Some("GET"), "/api/x"));
    assert!(file.rules[1].matches.endpoint.as_ref().unwrap().is_any());
}

#[test]
fn the_design_file_loads_as_written() {
    let file = good(DESIGN);
    let names: Vec<_> = file.rules.iter().filter_map(|rule| rule.name.as_deref()).collect();
    assert_eq!(names, ["free-writes", "free-hourly", "export-per-key", "anonymous", "in-flight"]);
    assert_eq!(file.rules[2].key_by.as_ref().unwrap().to_string(), "api_key:endpoint");
    assert_eq!(file.rules[3].key_by.as_ref().unwrap().to_string(), "api_key|ip");
    assert!(file.rules[4].key_by.as_ref().unwrap().is_global());
    let ip = &file.rules[3].matches.attributes[0].1;
    assert!(ip.matches("11.0.0.1") && !ip.matches("10.0.0.1") && !ip.matches("::ffff:10.0.0.1"));
    let slots = file.rules[4].limit.as_ref().unwrap();
    assert_eq!((slots.slots, slots.slot_ttl_ns, slots.capacity()), (5000, 10 * SECOND, 5000));
}

#[test]
fn every_field_is_read() {
    let file = good(FULL);
    assert_eq!((file.namespace.as_str(), file.ipv6_prefix, file.allow_block_all), ("shop", 56, true));
    assert_eq!((file.escaped_slash, file.case), (EscapedSlash::Keep, PathCase::Insensitive));
    let rule = &file.rules[0];
    assert_eq!(rule.description.as_deref(), Some("Two lines\nof text.\n"));
    assert_eq!(rule.resource.as_deref(), Some("orders"));
    assert_eq!((rule.mode, rule.consistency, rule.missing), (Enforcement::Shadow, Consistency::Leased, Missing::Share));
    assert_eq!((rule.lease, rule.soft), (Some(LeaseSpec::Tokens(5)), Some(SoftSpec { percent: 20 })));
    assert_eq!((rule.shards, rule.max_memory, rule.max_debt), (2, Some(25), Some(100)));
    assert_eq!((rule.on_fail, rule.count_denied), (Some(OnFail::Allow), true));
    assert_eq!(rule.doc_url.as_deref(), Some("https://example.com/limits"));
    assert_eq!(rule.error_code.as_deref(), Some("orders.too_many-writes"));
    let endpoint = rule.matches.endpoint.as_ref().unwrap();
    assert!(endpoint.matches(Some("PUT"), "/orders/7/x") && !endpoint.matches(Some("PUT"), "/orders/7/preview"));
    assert!(matches!(&rule.cost, Cost::ByMatch(cases) if cases.len() == 2 && cases[1].cost == 2));
    assert_eq!(rule.limit.as_ref().unwrap().capacity(), 20);
    let queue = file.rules[1].limit.as_ref().unwrap();
    assert_eq!((queue.is_queue(), queue.is_gcra(), queue.capacity()), (true, false, 21));
    assert_eq!(file.rules[2].limit.as_ref().unwrap().align, Align::Key);
    assert!(file.rules[4].unlimited && file.rules[4].limit.is_none());
    assert_eq!(file.rules[4].replaces, ["queue", "window"]);
    assert_eq!(file.clients[0].attributes, [("region".into(), "eu".into()), ("plan".into(), "7".into())]);
    assert_eq!(file.overrides[0].valid_from_ns, Some(1_796_083_200 * SECOND));
    assert_eq!(file.overrides[0].valid_until_ns, Some(1_798_758_000 * SECOND));
    assert_eq!((file.overrides[1].requests, file.overrides[1].burst), (Some(600), Some(100)));
}

#[test]
fn a_file_may_be_about_clients_alone() {
    for rules in ["", "rules: []\n"] {
        let file = good(&format!("{rules}clients:\n  - {{ client_key: \"key:a\", tier: paid }}\n"));
        assert_eq!((file.rules.len(), file.clients.len()), (0, 1));
    }
    for text in ["", "rules: []\n", "clients: []\n", "rules: []\nclients: []\n"] {
        assert!(read("rules.yaml", text).unwrap_err().to_string().contains("a file needs at least one rule"), "{text}");
    }
}

#[test]
fn a_burst_of_zero_means_requests() {
    let rule = only_rule("limit: { requests: 7, window: 1s, burst: 0 }").unwrap();
    assert_eq!(rule.limit.as_ref().map(|limit| (limit.burst, limit.capacity())), Some((None, 7)));
}

#[test]
fn y08_a_truncated_file_never_panics() {
    for text in [FIRST, DESIGN, FULL] {
        for end in 0..=text.len() {
            match read_bytes("rules.yaml", &text.as_bytes()[..end]) {
                Ok(file) => assert!(!file.rules.is_empty(), "{end}"),
                Err(report) => assert!(report.is_fatal() && !report.to_string().is_empty(), "{end}"),
            }
        }
    }
}

#[test]
fn damaged_files_never_panic() {
    let mut seed: u64 = 99;
    let mut next = |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % bound
    };
    let junk = [
        b'{', b'}', b'[', b']', b':', b'*', b'!', b'&', b'"', b'\'', b'\n', b' ', b'-', b'#', 0, 0xc3, 0xff, b'0',
        b'%', b'|',
    ];
    for _ in 0..3_000 {
        let mut bytes = FULL.as_bytes().to_vec();
        for _ in 0..=next(4) {
            let at = next(bytes.len());
            match next(3) {
                0 => bytes[at] = junk[next(junk.len())],
                1 => bytes.insert(at, junk[next(junk.len())]),
                _ => {
                    bytes.remove(at);
                }
            }
        }
        if let Err(report) = read_bytes("rules.yaml", &bytes) {
            assert!(!report.to_string().is_empty());
        }
    }
}

/// RELIABILITY Y11: a placeholder for a secret must not become a value that callers can send.
#[test]
fn y11_variables_are_refused_with_where_secrets_go() {
    let text = "rules:\n  - match: { api_key: '${SECRET}' }\n    limit: { requests: 1, window: 1s }\n";
    let report = read("rules.yaml", text).unwrap_err().to_string();
    assert!(report.contains("error[unreplaced-variable]: `${SECRET}` is not replaced by anything"), "{report}");
    assert!(report.contains("rules.yaml:2:23") && report.contains("settings of the server"), "{report}");
    assert!(read("rules.yaml", &text.replace("${SECRET}", "$HOME {x}")).is_ok());
}

/// An empty list is a mistake, unless the file sets `allow_shrink`.
#[test]
fn an_empty_list_of_rules_can_be_meant() {
    assert!(read("rules.yaml", "rules: []").unwrap_err().to_string().contains("write `allow_shrink: true` beside it"));
    let file = read("rules.yaml", "allow_shrink: true\nrules: []").unwrap();
    assert!(file.rules.is_empty() && file.allow_shrink);
}

#[test]
fn a_rule_takes_no_more_room_than_it_needs() {
    let text = "rules: [{ name: a, match: { org: acme, endpoint: 'POST /api/v1/*' }, key_by: user_id, limit: { requests: 1, window: 1s } }]";
    let rule = read("rules.yaml", text).unwrap().rules.remove(0);
    let (_, org) = &rule.matches.attributes[0];
    let endpoint = rule.matches.endpoint.as_ref().unwrap();
    let room = [
        rule.matches.attributes.capacity(),
        org.any.capacity(),
        endpoint.any.capacity(),
        endpoint.any[0].methods.capacity(),
        rule.key_by.as_ref().unwrap().parts.capacity(),
    ];
    assert_eq!(room, [1; 5]);
}

#[test]
fn penalties_are_read_and_their_mistakes_reported() {
    let read = |penalty: &str, more: &str| {
        let limit = "limit: { requests: 1, window: 1s }";
        crate::read("rules.yaml", &format!("rules: [{{ name: r, key_by: ip, {limit}, penalty: {penalty}{more} }}]"))
    };
    let penalty = read("{ after: 100, within: 1m, block: 10m, growth: 2 }", "").unwrap().rules[0].penalty.unwrap();
    assert_eq!((penalty.after, penalty.within_ns, penalty.growth), (100, 60_000_000_000, 2));
    assert_eq!((penalty.block_ns, penalty.max_ns), (600_000_000_000, 86_400_000_000_000));
    for (wrong, more, code) in [
        ("{ after: 100, within: 1m }", "", "missing-field"),
        ("{ after: 0, within: 1m, block: 10m }", "", "out-of-range"),
        ("{ after: 1001, within: 1m, block: 10m }", "", "out-of-range"),
        ("{ after: 9, within: 1m, block: 31d }", "", "out-of-range"),
        ("{ after: 9, within: 10m, block: 1m }", "", "out-of-range"),
        ("{ after: 9, within: 1m, block: 10m, max: 5m }", "", "out-of-range"),
        ("{ after: 9, within: 1m, block: 10m, growht: 2 }", "", "unknown-field"),
        ("{ after: 9, within: 1m, block: 10m }", ", consistency: leased", "misplaced-field"),
        ("{ after: 9, within: 1m, block: 10m }", ", shards: 1, count_denied: true", "misplaced-field"),
    ] {
        let report = read(wrong, more).unwrap_err();
        assert!(report.to_string().contains(code), "{wrong}{more}: {report}");
    }
}
