//! Decisions in memory allocate nothing.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tollgate_core::{Attribute, Request};
use tollgate_engine::Engine;

#[test]
fn a_decision_allocates_nothing() {
    // Normalising ASCII text to a Unicode form allocates nothing.
    let mut yaml = String::from("normalize: nfkc\nrules:\n");
    for number in 0..1000 {
        yaml += &format!(
            "  - {{ match: {{ tier: t{number} }}, key_by: api_key, limit: {{ requests: 1000000, window: 1s }} }}\n"
        );
    }
    yaml += "  - { name: posts, match: { endpoint: 'POST /api/*' }, key_by: 'user_id:endpoint', limit: { requests: 1000, window: 1m, algorithm: sliding_window } }\n";
    yaml += "  - { name: paths, match: { endpoint: '/api/{x}' }, key_by: [ip, endpoint], limit: { requests: 1000, window: 1m, algorithm: fixed_window } }\n";
    yaml += "clients: [{ client_key: 'user:42', tier: free, org: acme, attributes: { plan: x } }]\noverrides:\n";
    for (client, rule) in [("key:abc", "paths"), ("user:42", "posts"), ("ip:192.0.2.1", "posts"), ("org:acme", "paths")]
    {
        yaml += &format!(
            "  - {{ client_key: '{client}', rule: {rule}, requests: 999, valid_until: 2090-01-01T00:00:00Z }}\n"
        );
    }
    let engine = Engine::in_memory(tollgate_engine::rules_from_yaml(&yaml).unwrap());
    let request = Request::new()
        .with(Attribute::ApiKey, "abc")
        .with(Attribute::UserId, "42")
        .with(Attribute::Tier, "t500")
        .with(Attribute::Ip, "192.0.2.1")
        .with(Attribute::Endpoint, "POST /api/orders")
        .with_custom(&[("region", "eu")]);
    let warm = engine.decide_now(&request); // makes the buckets
    assert_eq!(warm.rulings().len(), 3);
    let limits: Vec<u64> = warm.rulings().iter().map(|ruling| ruling.requests).collect();
    assert_eq!(limits, [1_000_000, 999, 999], "overrides hold");
    drop(warm);
    let measured = allocation_counter::measure(|| {
        for _ in 0..100 {
            assert!(engine.decide_now(&request).is_allowed());
            let decided = pin!(engine.decide(&request)).poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(decided, Poll::Ready(decision) if decision.is_allowed()));
        }
    });
    assert_eq!(measured.count_total, 0, "{measured:?}");
}

/// For every kind of pattern, with many rules.
#[test]
fn matching_patterns_allocates_nothing() {
    let mut yaml = String::from("case: insensitive\nrules:\n");
    for number in 0..500 {
        for (kind, condition) in [
            ("prefix", format!("org: 'acme-{number}-*'")),
            ("suffix", format!("org: '*-{number}'")),
            ("piece", format!("org: '*-{number}-*'")),
            ("glob", format!("endpoint: '/*/Items{number}'")),
            ("template", format!("endpoint: '/shop/{{id}}/x{number}'")),
            ("network", format!("ip: '10.0.{}.0/24'", number % 256)),
        ] {
            yaml += &format!(
                "  - {{ name: {kind}-{number}, match: {{ {condition} }}, key_by: 'org|ip|endpoint', limit: {{ requests: 1000000, window: 1s }} }}\n"
            );
        }
    }
    let listed: Vec<String> = (0..500).map(|number| format!("'*-{number}', '!other-{number}'")).collect();
    yaml += &format!(
        "  - {{ name: list, match: {{ org: [{}] }}, key_by: org, limit: {{ requests: 1000000, window: 1s }} }}\n",
        listed.join(", ")
    );
    let engine = Engine::in_memory(tollgate_engine::rules_from_yaml(&yaml).unwrap());
    let asked = [
        (Attribute::Org, "acme-7-eu", ["prefix-7", "piece-7"].as_slice()),
        (Attribute::Org, "acme-9", &["suffix-9", "list"]),
        (Attribute::Ip, "10.0.7.1", &["network-7", "network-263"]),
        (Attribute::Endpoint, "GET /shop/items7", &["glob-7"]),
        (Attribute::Endpoint, "GET /shop/42/X7", &["template-7"]),
    ];
    for (attribute, value, rules) in asked {
        let request = Request::new().with(attribute, value);
        let warm = engine.decide_now(&request);
        let ruled: Vec<&str> = warm.rulings().iter().filter_map(|ruling| Some(&*warm.rule(ruling)?.name)).collect();
        assert_eq!(ruled, rules);
        drop(warm);
        let measured = allocation_counter::measure(|| {
            for _ in 0..100 {
                assert!(engine.decide_now(&request).is_allowed());
            }
        });
        assert_eq!(measured.count_total, 0, "{value}: {measured:?}");
    }
}
