//! Native rules.

use std::time::Duration;

use tollgate_lab::patience;
use tollgate_lab::process::Signal;

use crate::rig::{RULES, Tollgate, call, envoy, send};

#[test]
fn clients_see_allowed_and_denied_responses() {
    let tollgate = Tollgate::serve(RULES);
    let proxy = envoy(tollgate.grpc, |config| config);
    let ask = || call(proxy.address(), "/orders", "x-api-key: k\r\n");
    for left in ["2", "1", "0"] {
        let answer = ask();
        assert_eq!((answer.status, answer.body.as_str()), (200, "hello"), "{answer:?}\n{}", proxy.log());
        assert_eq!(answer.field("x-ratelimit-remaining"), Some(left), "{answer:?}");
        assert!(answer.field("ratelimit").is_some_and(|field| field.contains("per-key")), "{answer:?}");
    }
    let denied = ask();
    assert_eq!(denied.status, 429, "{denied:?}");
    assert_eq!(denied.field("content-type"), Some("application/problem+json"));
    assert!(denied.body.contains("\"violated-policies\":[\"per-key\"]"), "{denied:?}");
    assert_eq!(denied.field("x-envoy-ratelimited"), Some("true"));
    let wait: u64 = denied.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=66).contains(&wait), "at most the window and the default jitter of a tenth: {wait}");
    let other = call(proxy.address(), "/others", "x-api-key: k\r\n");
    assert_eq!(other.status, 200, "another endpoint has a bucket of its own");
    let left: u64 = other.field("ratelimit").and_then(left_of_address).unwrap();
    assert_eq!(left, 96, "of five requests four were charged to the address: the denied one was not charged");
    let grpc = send(
        proxy.address(),
        "POST /orders HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/grpc\r\n\
         x-api-key: k\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!((grpc.status, grpc.field("grpc-status")), (200, Some("8")), "RESOURCE_EXHAUSTED: {grpc:?}");
}

/// `"per-address";r=96;t=1, …`
fn left_of_address(field: &str) -> Option<u64> {
    let own = field.split(", ").find(|policy| policy.starts_with("\"per-address\""))?;
    own.split(';').find_map(|part| part.strip_prefix("r="))?.parse().ok()
}

#[test]
fn tokens_are_charged_after_the_response() {
    let tollgate = Tollgate::serve(RULES);
    let proxy = envoy(tollgate.grpc, |config| config);
    let ask = || call(proxy.address(), "/v1/completions", "x-api-key: t\r\n").status;
    assert_eq!(ask(), 200);
    // Seven of ten are used, so the next request is allowed, and its response uses seven more.
    assert_eq!(ask(), 200);
    // The report follows the response: then fourteen of ten are used.
    patience::until("usage above the limit is recorded", Duration::from_secs(20), || ask() == 429);
    let page = call(([127, 0, 0, 1], tollgate.metrics).into(), "/metrics", "");
    assert_eq!(page.status, 200);
}

#[test]
fn a_rule_with_accept_limits_takes_the_limit_of_the_request() {
    let tollgate = Tollgate::serve(RULES);
    let proxy = envoy(tollgate.grpc, |config| config);
    let statuses: Vec<u16> = (0..3).map(|_| call(proxy.address(), "/planned", "x-api-key: p\r\n").status).collect();
    assert_eq!(statuses, [200, 200, 429], "two an hour, as the metadata says");
}

#[test]
fn an_unavailable_limiter_allows_or_denies_as_configured() {
    let mut tollgate = Tollgate::serve(RULES);
    let open = envoy(tollgate.grpc, |config| config.replace("timeout: 20s", "timeout: 0.3s"));
    let closed = envoy(tollgate.grpc, |config| config.replace("failure_mode_deny: false", "failure_mode_deny: true"));
    let ask = |at| call(at, "/away", "x-api-key: a\r\n");
    let limited = |answer: &crate::rig::Answer| answer.field("ratelimit").is_some();
    patience::until("Envoy reaches Tollgate", Duration::from_secs(20), || limited(&ask(open.address())));
    tollgate.process.halt();
    let late = ask(open.address());
    assert_eq!((late.status, limited(&late)), (200, false), "no answer in time: {late:?}");
    tollgate.process.signal(Signal::CONT);
    tollgate.process.kill();
    patience::until("fail open", Duration::from_secs(20), || ask(open.address()).status == 200);
    patience::until("fail closed", Duration::from_secs(20), || ask(closed.address()).status == 500);
}
