//! Amounts by meter over gRPC, and as hits of Envoy's descriptors.

use std::collections::HashMap;

use tollgate_proto::RateLimitDescriptor;
use tollgate_proto::rate_limit_descriptor::Entry;
use tollgate_proto::rls::RateLimitRequest;
use tollgate_proto::rls::rate_limit_response::Code as Verdict;
use tollgate_proto::rls::rate_limit_service_client::RateLimitServiceClient;
use tollgate_proto::v1::{CheckRequest, ExtendRequest, ReserveRequest, SettleRequest};
use tonic::{Code, Status};

use crate::rig::{Rig, about};

const RULES: &str = "
key_by: client_key
rules:
  - { name: requests, limit: { requests: 100, window: 1h, algorithm: fixed_window } }
  - { name: output, meter: output_tokens, limit: { amount: 1000, window: 1h, algorithm: fixed_window } }
  - { name: flight, limit: { algorithm: concurrency, slots: 3, slot_ttl: 30s } }
";

fn costs(amounts: &[(&str, u64)]) -> HashMap<String, u64> {
    amounts.iter().map(|(meter, amount)| ((*meter).to_owned(), *amount)).collect()
}

fn metered(amounts: &[(&str, u64)]) -> CheckRequest {
    CheckRequest { costs: costs(amounts), ..about("a") }
}

/// What is left of requests and tokens.
async fn left(rig: &Rig) -> Vec<u64> {
    let looked = CheckRequest { peek: true, cost: Some(0), ..metered(&[("output_tokens", 0)]) };
    let rules = rig.client().await.check(looked).await.unwrap().into_inner().rules;
    rules.iter().map(|rule| rule.remaining.unwrap()).collect()
}

async fn reserve(rig: &Rig, amounts: &[(&str, u64)]) -> String {
    let request = ReserveRequest { request: Some(metered(amounts)) };
    rig.client().await.reserve(request).await.unwrap().into_inner().reservation
}

fn refused<T: std::fmt::Debug>(answer: Result<T, Status>) -> (Code, String) {
    let status = answer.expect_err("it is refused");
    (status.code(), status.message().split(':').next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_reservation_is_extended_and_settled_per_meter() {
    let rig = Rig::start(RULES);
    let mut client = rig.client().await;
    let request = ReserveRequest { request: Some(metered(&[("output_tokens", 200)])) };
    let reserved = client.reserve(request).await.unwrap().into_inner();
    assert_eq!(reserved.ttl_ms, Some(30_000));
    assert_eq!(left(&rig).await, [99, 800]);
    let step = |reservation: &str, amount| ExtendRequest {
        reservation: reservation.to_owned(),
        costs: costs(&[("output_tokens", amount)]),
    };
    let extended = client.extend(step(&reserved.reservation, 300)).await.unwrap().into_inner();
    assert!(extended.decision.unwrap().allowed && extended.ttl_ms == Some(30_000));
    assert_eq!(left(&rig).await, [99, 500]);
    let again = refused(client.extend(step(&reserved.reservation, 300)).await);
    assert_eq!(again, (Code::FailedPrecondition, "replaced_receipt".to_owned()));
    let denied = client.extend(step(&extended.reservation, 501)).await.unwrap().into_inner();
    assert!(!denied.slot_lost && denied.reservation.is_empty());
    let denial = denied.decision.unwrap();
    assert_eq!((denial.allowed, denial.rule.as_str(), denial.limit), (false, "output", Some(1000)));
    assert!(denial.remaining == Some(500) && denial.retry_after_ms.is_some());

    let settle = |reservation: &str, amount| SettleRequest {
        reservation: reservation.to_owned(),
        cost: None,
        costs: costs(&[("output_tokens", amount)]),
    };
    let old = client.settle(settle(&reserved.reservation, 0)).await.unwrap().into_inner();
    assert!(!old.settled, "an old receipt settles nothing");
    let settled = client.settle(settle(&extended.reservation, 450)).await.unwrap().into_inner();
    assert_eq!((settled.settled, settled.refunded, settled.extended), (true, 2, 0), "output and the slot");
    assert!(!client.settle(settle(&extended.reservation, 0)).await.unwrap().into_inner().settled);
    assert_eq!(left(&rig).await, [99, 550]);
}

#[tokio::test]
async fn answers_name_the_meter_of_every_rule() {
    let rules = "key_by: client_key
rules:
  - { name: requests, limit: { requests: 100, window: 1h, algorithm: fixed_window } }
  - { name: output, meter: output_tokens, limit: { amount: 50, window: 1h, algorithm: fixed_window } }
  - name: credits
    meter: { input_tokens: 1, output_tokens: 4 }
    limit: { amount: 1000, window: 1h, algorithm: fixed_window }";
    let rig = Rig::start(rules);
    let answer = rig.client().await.check(metered(&[("output_tokens", 40)])).await.unwrap().into_inner();
    assert_eq!((answer.rule.as_str(), answer.meter.as_str()), ("output", "output_tokens"));
    let left = answer.rules.iter().map(|rule| (rule.rule.as_str(), rule.meter.as_str(), rule.remaining));
    let expected = [
        ("requests", "", Some(99)),
        ("output", "output_tokens", Some(10)),
        ("credits", "input_tokens+4*output_tokens", Some(840)),
    ];
    assert_eq!(left.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn what_a_limit_counts_no_further_is_reported() {
    let rules = "rules: [{ name: output, key_by: client_key, meter: output_tokens, max_debt: 100, limit: { amount: 500, window: 366d } }]";
    let rig = Rig::start(rules);
    let reservation = reserve(&rig, &[("output_tokens", 50)]).await;
    let request = SettleRequest { reservation, cost: None, costs: costs(&[("output_tokens", 700)]) };
    let settled = rig.client().await.settle(request).await.unwrap().into_inner();
    assert_eq!(settled.above, costs(&[("output_tokens", 650)]));
    let [left] = settled.uncharged.as_slice() else { panic!("one rule: {settled:?}") };
    assert_eq!((left.rule.as_str(), left.units), ("output", 100));
}

#[tokio::test]
async fn bad_amounts_meters_and_receipts_have_codes_and_charge_nothing() {
    let (rig, other) = (Rig::start(RULES), Rig::start(RULES));
    let receipt = reserve(&rig, &[("output_tokens", 0)]).await;
    let foreign = reserve(&other, &[("output_tokens", 0)]).await;
    let before = left(&rig).await;
    let mut client = rig.client().await;
    let bad = |code: &str| (Code::InvalidArgument, code.to_owned());
    let requests = [
        (vec![("output_tokens", 1 << 53)], "bad_cost"),
        (vec![("output_tokens", u64::MAX)], "bad_cost"),
        (vec![("Output", 1)], "bad_attribute_name"),
        (vec![("", 1)], "bad_attribute_name"),
        (vec![("output_token", 1)], "unknown_meter"),
    ];
    for (amounts, code) in requests {
        assert_eq!(refused(client.check(metered(&amounts)).await), bad(code), "{amounts:?}");
        let request = ReserveRequest { request: Some(metered(&amounts)) };
        assert_eq!(refused(client.reserve(request).await), bad(code), "{amounts:?}");
    }
    let twice = CheckRequest { cost: Some(1), ..metered(&[("requests", 2)]) };
    assert_eq!(refused(client.check(twice).await), bad("duplicate_field"));
    let receipts = [
        (&receipt, ("output_tokens", 1 << 53), "bad_cost"),
        (&receipt, ("input_tokens", 1), "meter_not_reserved"),
        (&foreign, ("output_tokens", 1), "unknown_receipt"),
        (&"tgr_AAAA".to_owned(), ("output_tokens", 1), "unknown_receipt"),
        (&String::new(), ("output_tokens", 1), "unknown_receipt"),
    ];
    for (reservation, amount, code) in receipts {
        let step = ExtendRequest { reservation: reservation.clone(), costs: costs(&[amount]) };
        assert_eq!(refused(client.extend(step).await), bad(code), "{amount:?}");
        let settle = SettleRequest { reservation: reservation.clone(), cost: None, costs: costs(&[amount]) };
        assert_eq!(refused(client.settle(settle).await), bad(code), "{amount:?}");
    }
    assert_eq!(left(&rig).await, before);
}

fn descriptor(entries: &[(&str, &str)], hits: u64) -> RateLimitDescriptor {
    let entries = entries.iter().map(|(key, value)| Entry { key: (*key).to_owned(), value: (*value).to_owned() });
    RateLimitDescriptor { entries: entries.collect(), hits_addend: Some(hits), ..RateLimitDescriptor::default() }
}

async fn ask(rig: &Rig, descriptors: Vec<RateLimitDescriptor>) -> Result<Verdict, Status> {
    let mut envoy = RateLimitServiceClient::with_origin(rig.wire().await, "http://localhost".parse().unwrap());
    let request = RateLimitRequest { domain: "default".to_owned(), descriptors, hits_addend: 0 };
    envoy.should_rate_limit(request).await.map(|answer| answer.into_inner().overall_code())
}

#[tokio::test]
async fn hits_of_a_descriptor_with_a_meter_are_amounts_of_it() {
    let rig = Rig::start(RULES);
    let tokens = |hits| descriptor(&[("client_key", "a"), ("meter", "output_tokens")], hits);
    assert_eq!(ask(&rig, vec![tokens(300)]).await.unwrap(), Verdict::Ok);
    assert_eq!(left(&rig).await, [100, 700], "no request");
    let both = vec![descriptor(&[("client_key", "a")], 1), tokens(200)];
    assert_eq!(ask(&rig, both).await.unwrap(), Verdict::Ok);
    assert_eq!(left(&rig).await, [99, 500]);
    let much = vec![descriptor(&[("client_key", "a")], 1), tokens(501)];
    assert_eq!(ask(&rig, much).await.unwrap(), Verdict::OverLimit);
    assert_eq!(left(&rig).await, [99, 500], "all or nothing");
    assert_eq!(ask(&rig, vec![tokens(0)]).await.unwrap(), Verdict::Ok);
    assert_eq!(left(&rig).await, [99, 500], "no hits are a look");
    assert_eq!(ask(&rig, vec![tokens(500)]).await.unwrap(), Verdict::Ok);
    assert_eq!(ask(&rig, vec![tokens(0)]).await.unwrap(), Verdict::OverLimit, "no token is left");
    let back = RateLimitDescriptor { is_negative_hits: true, ..tokens(100) };
    assert_eq!(ask(&rig, vec![back]).await.unwrap(), Verdict::Ok);
    assert_eq!(left(&rig).await, [99, 100]);
    let requests = descriptor(&[("client_key", "a"), ("meter", "requests")], 4);
    assert_eq!(ask(&rig, vec![requests]).await.unwrap(), Verdict::Ok);
    assert_eq!(left(&rig).await, [95, 100]);
}

#[tokio::test]
async fn descriptors_with_bad_meters_are_refused_and_charge_nothing() {
    let rig = Rig::start(RULES);
    let bad: [&[(&str, &str)]; 4] = [
        &[("client_key", "a"), ("meter", "Output")],
        &[("client_key", "a"), ("meter", "")],
        &[("client_key", "a"), ("meter", "output_token")],
        &[("client_key", "a"), ("meter", "output_tokens"), ("meter", "output_tokens")],
    ];
    for entries in bad {
        for others in [vec![], vec![descriptor(&[("client_key", "a")], 1)]] {
            let descriptors = others.into_iter().chain([descriptor(entries, 5)]).collect();
            assert_eq!(ask(&rig, descriptors).await.unwrap_err().code(), Code::InvalidArgument, "{entries:?}");
        }
    }
    assert_eq!(left(&rig).await, [100, 1000]);
}
