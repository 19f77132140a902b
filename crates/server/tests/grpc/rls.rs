//! G12–G14: Envoy's rate limit service as it comes over the wire.

use tollgate_proto::RateLimitDescriptor;
use tollgate_proto::rate_limit_descriptor::{Entry, RateLimitOverride};
use tollgate_proto::rls::rate_limit_response::Code as Verdict;
use tollgate_proto::rls::rate_limit_service_client::RateLimitServiceClient;
use tollgate_proto::rls::{RateLimitRequest, RateLimitResponse};
use tonic::{Code, Status};

use crate::rig::{FULL, RULES, Rig};
use crate::wire::Wire;

type Envoy = RateLimitServiceClient<Wire>;

async fn envoy(rig: &Rig) -> Envoy {
    RateLimitServiceClient::with_origin(rig.wire().await, "http://localhost".parse().unwrap())
}

fn entry(key: &str, value: &str) -> Entry {
    Entry { key: key.to_owned(), value: value.to_owned() }
}

fn about(client_key: &str) -> RateLimitDescriptor {
    RateLimitDescriptor { entries: vec![entry("client_key", client_key)], ..RateLimitDescriptor::default() }
}

fn asking(descriptors: Vec<RateLimitDescriptor>) -> RateLimitRequest {
    RateLimitRequest { domain: "default".to_owned(), descriptors, hits_addend: 0 }
}

async fn ask(envoy: &mut Envoy, request: RateLimitRequest) -> Result<RateLimitResponse, Status> {
    envoy.should_rate_limit(request).await.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn is_answered_from_the_same_rules() {
    let rig = Rig::start(RULES);
    let mut envoy = envoy(&rig).await;
    let answer = ask(&mut envoy, asking(vec![about("a")])).await.unwrap();
    assert_eq!(answer.overall_code(), Verdict::Ok);
    assert_eq!(answer.statuses[0].limit_remaining, 999);
    assert_eq!(rig.left_to("a").await, FULL - 1);
    let unknown = RateLimitRequest { domain: "nobody".to_owned(), ..asking(vec![about("a")]) };
    assert_eq!(ask(&mut envoy, unknown).await.unwrap().overall_code(), Verdict::Ok);
}

#[tokio::test]
async fn a_limit_that_came_with_the_request_is_told_with_its_own_window() {
    let rules =
        "rules:\n  - { name: asked, key_by: client_key, accept_limits: true, limit: { requests: 9, window: 1h } }\n";
    let rig = Rig::start(rules);
    let limit = Some(RateLimitOverride { requests_per_unit: 3, unit: 7 }); // WEEK
    let asked = RateLimitDescriptor { limit, ..about("a") };
    let answer = ask(&mut envoy(&rig).await, asking(vec![asked])).await.unwrap();
    let policy =
        answer.response_headers_to_add.iter().find(|header| header.key.eq_ignore_ascii_case("RateLimit-Policy"));
    let policy = policy.expect("a policy").value.clone();
    assert!(policy.contains("q=3") && policy.contains("w=604800"), "{policy}");
}

#[tokio::test]
async fn g12_what_is_too_much_or_too_little_is_refused() {
    let rig = Rig::start(RULES);
    let mut envoy = envoy(&rig).await;
    let of = |entries: Vec<Entry>| RateLimitDescriptor { entries, ..RateLimitDescriptor::default() };
    let long = "x".repeat(60_000);
    let refused = [
        RateLimitRequest { domain: String::new(), ..asking(vec![about("victim")]) },
        asking(Vec::new()),
        asking(vec![about("victim"); 33]),
        asking(vec![about("victim"), of(Vec::new())]),
        asking(vec![of(vec![entry("client_key", "victim"); 17])]),
        asking(vec![about("victim"), of(vec![entry(&"k".repeat(513), "x")])]),
        asking(vec![about("victim"), of(vec![entry("client_key", &long)])]),
    ];
    for request in refused {
        assert_eq!(ask(&mut envoy, request).await.unwrap_err().code(), Code::InvalidArgument);
    }
    assert_eq!(rig.left_to("victim").await, FULL);
}

/// As envoyproxy/ratelimit has it, where that is configured: every error is UNKNOWN.
#[tokio::test]
async fn errors_are_unknown_where_they_are_there() {
    let rig = Rig::with(RULES, |config, _| config.envoy.unknown_errors = true);
    let mut envoy = envoy(&rig).await;
    let nameless = RateLimitRequest { domain: String::new(), ..asking(vec![about("victim")]) };
    for (request, why) in [
        (nameless, "rate limit domain must not be empty"),
        (asking(Vec::new()), "rate limit descriptor list must not be empty"),
    ] {
        let status = ask(&mut envoy, request).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unknown, why));
    }
    assert_eq!(rig.left_to("victim").await, FULL);
}

#[tokio::test]
async fn g13_hits_of_any_size_never_overflow() {
    let rig = Rig::start(RULES);
    let mut envoy = envoy(&rig).await;
    let huge = RateLimitRequest { hits_addend: u32::MAX, ..asking(vec![about("a")]) };
    assert_eq!(ask(&mut envoy, huge).await.unwrap().overall_code(), Verdict::OverLimit);
    let own = |hits| RateLimitDescriptor { hits_addend: Some(hits), ..about("a") };
    assert_eq!(ask(&mut envoy, asking(vec![own(u64::MAX)])).await.unwrap().overall_code(), Verdict::OverLimit);
    assert_eq!(ask(&mut envoy, asking(vec![own(0)])).await.unwrap().overall_code(), Verdict::Ok);
    assert_eq!(rig.left_to("a").await, FULL, "none of it was charged");
    assert_eq!(ask(&mut envoy, asking(vec![about("a")])).await.unwrap().overall_code(), Verdict::Ok);
    assert_eq!(rig.left_to("a").await, FULL - 1, "0 for all of them means 1");
}

#[tokio::test]
async fn g14_overrides_that_no_rule_allows_change_nothing() {
    let rig = Rig::start(RULES);
    let mut envoy = envoy(&rig).await;
    let with = |requests_per_unit, unit| RateLimitDescriptor {
        limit: Some(RateLimitOverride { requests_per_unit, unit }),
        ..about("a")
    };
    for unit in [0, 99, -1] {
        let status = ask(&mut envoy, asking(vec![with(1, unit)])).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{unit}");
    }
    for requests in [0, u32::MAX] {
        let answer = ask(&mut envoy, asking(vec![with(requests, 1)])).await.unwrap();
        assert_eq!(answer.overall_code(), Verdict::Ok);
        assert_eq!(answer.statuses[0].current_limit.as_ref().unwrap().requests_per_unit, 1000);
    }
    assert_eq!(rig.left_to("a").await, FULL - 2);
}
