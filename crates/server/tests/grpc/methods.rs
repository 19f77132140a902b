//! Every method of Tollgate's own service, as a client sees it.

use tokio::time::timeout;
use tollgate_proto::v1::checked::Result as Checked;
use tollgate_proto::v1::{
    AcquireSlotRequest, BatchCheckRequest, CheckRequest, CheckResponse, ExplainRequest, ReleaseSlotRequest,
    RenewSlotRequest, ReserveRequest, SettleRequest, StreamChecksRequest,
};
use tonic::{Code, Streaming};

use crate::rig::{FULL, PATIENCE, RULES, Rig, about, check, with};
use crate::wire::sent;

const TWO: &str = "rules:
  - { name: users, key_by: user_id, limit: { requests: 2, window: 1h } }
  - { name: all, key_by: global, limit: { requests: 100, window: 1h } }
";

#[tokio::test]
async fn check_says_what_json_says() {
    let rig = Rig::start(TWO);
    let mut client = rig.client().await;
    let first = check(&mut client, with(&[("user_id", "7")])).await;
    assert!(first.allowed);
    assert_eq!((first.limit, first.remaining, first.rule.as_str()), (Some(2), Some(1), "users"));
    assert_eq!((first.mode.as_str(), first.retry_after_ms, first.never, first.delay_ms), ("store", None, false, 0));
    assert!(first.reset_at.is_some() && first.generation > 0);
    let rules: Vec<(&str, bool, bool)> =
        first.rules.iter().map(|rule| (rule.rule.as_str(), rule.allowed, rule.enforced)).collect();
    assert_eq!(rules, [("users", true, true), ("all", true, true)]);

    let looked = check(&mut client, CheckRequest { cost: Some(0), ..with(&[("user_id", "7")]) }).await;
    assert_eq!(looked.remaining, Some(1), "a cost of nothing only looks");
    let costly = check(&mut client, CheckRequest { cost: Some(3), ..with(&[("user_id", "7")]) }).await;
    assert!(!costly.allowed && costly.never && costly.retry_after_ms.is_none());
    assert!(check(&mut client, with(&[("user_id", "7")])).await.allowed);
    let denied = check(&mut client, with(&[("user_id", "7")])).await;
    let wait = denied.retry_after_ms.expect("a wait");
    assert!(!denied.allowed && denied.remaining == Some(0) && wait > 1_000_000 && wait <= 1_800_000, "{denied:?}");

    let nobody = check(&mut client, with(&[("org", "acme")])).await;
    assert_eq!((nobody.limit, nobody.rule.as_str()), (Some(100), "all"));
    let elsewhere = CheckRequest { namespace: "elsewhere".to_owned(), ..about("x") };
    let elsewhere = check(&mut client, elsewhere).await;
    assert!(elsewhere.allowed && elsewhere.limit.is_none() && elsewhere.rule.is_empty());
    let figures = rig.metrics().await;
    assert!(figures.contains(r#"tollgate_grpc_requests_total{method="/tollgate.v1.Tollgate/Check",code="OK"} 7"#));
}

#[tokio::test]
async fn the_wait_is_exact_whatever_jitter_is_configured() {
    let rules = "rules: [{ name: one, key_by: client_key, limit: { requests: 1, window: 1h } }]";
    let rig = Rig::with(rules, |config, _| config.answer.retry_jitter = "100%".to_owned());
    let mut client = rig.client().await;
    assert!(check(&mut client, about("x")).await.allowed);
    let mut waits = Vec::new();
    for _ in 0..20 {
        waits.push(check(&mut client, about("x")).await.retry_after_ms.unwrap());
    }
    assert!(waits.iter().all(|wait| (3_000_000..=3_600_000).contains(wait)), "{waits:?}");
    assert!(waits.is_sorted_by(|earlier, later| earlier >= later), "time only passes: {waits:?}");
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_by_name_and_charges_nothing() {
    let rig = Rig::start(RULES);
    let mut client = rig.client().await;
    let many: Vec<(String, String)> = (0..65).map(|number| (format!("a{number}"), "x".to_owned())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let long = "x".repeat(60_000);
    let refused = [
        (CheckRequest::default(), "missing_field: attributes say who asks"),
        (CheckRequest { cost: Some(1 << 53), ..about("victim") }, "bad_cost: cost "),
        (with(&[("client_key", "victim\0")]), "bad_text: attributes.client_key "),
        (with(&[("client_key", "victim"), ("Upper", "x")]), "bad_attribute_name: attributes.Upper "),
        (with(&[("client_key", "victim"), ("path", "/x")]), "bad_attribute_name: attributes.path comes from"),
        (with(&[("client_key", "victim"), ("namespace", "x")]), "bad_attribute_name: attributes.namespace has"),
        (with(&many), "too_many: attributes holds more than 64"),
        (with(&[("client_key", "victim"), ("ip", "1.2.3")]), "bad_address: ip: not an address"),
        (with(&[("client_key", &long)]), "client_key"),
        (CheckRequest { namespace: "a\0".to_owned(), ..about("victim") }, "bad_text: namespace"),
    ];
    for (request, said) in refused {
        let status = client.check(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(status.message().contains(said), "{} instead of {said}", status.message());
    }
    assert_eq!(rig.left_to("victim").await, FULL);
    assert!(rig.metrics().await.contains(r#"Check",code="INVALID_ARGUMENT"} 10"#));
}

#[tokio::test]
async fn a_batch_decides_each_by_itself_or_nothing_at_all() {
    let rig = Rig::start(RULES);
    let mut client = rig.client().await;
    let requests = vec![
        about("a"),
        CheckRequest { cost: Some(2000), ..about("b") },
        with(&[("client_key", "c"), ("ip", "nowhere")]),
        about("a"),
    ];
    let results = client.batch_check(BatchCheckRequest { requests }).await.unwrap().into_inner().results;
    let told: Vec<String> = results
        .into_iter()
        .map(|checked| match checked.result.unwrap() {
            Checked::Decision(decision) => format!("{} {:?}", decision.allowed, decision.remaining),
            Checked::Fault(fault) => format!("{} {}", fault.code, fault.field),
        })
        .collect();
    assert_eq!(told, ["true Some(999)", "false Some(1000)", "bad_address ip", "true Some(998)"]);

    let requests = vec![about("victim"), CheckRequest::default()];
    let status = client.batch_check(BatchCheckRequest { requests }).await.unwrap_err();
    assert!(status.message().starts_with("missing_field: requests[1].attributes"), "{status:?}");
    let status = client.batch_check(BatchCheckRequest { requests: vec![about("victim"); 1001] }).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(rig.left_to("victim").await, FULL);
    let whole = BatchCheckRequest { requests: vec![about("whole"); 1000] };
    assert_eq!(client.batch_check(whole).await.unwrap().into_inner().results.len(), 1000);
    assert_eq!(rig.left_to("whole").await, 0);
    let empty = client.batch_check(BatchCheckRequest::default()).await.unwrap_err();
    assert_eq!((empty.code(), empty.message()), (Code::InvalidArgument, "missing_field: requests holds no request"));
}

async fn next<T>(stream: &mut Streaming<T>) -> T {
    timeout(PATIENCE, stream.message()).await.expect("an answer in time").unwrap().expect("an answer")
}

#[tokio::test]
async fn a_stream_answers_in_order_with_the_ids_of_the_questions() {
    let rig = Rig::start(RULES);
    let mut client = rig.client().await;
    let (ask, asked) = sent();
    let question = |id, request| StreamChecksRequest { id, request: Some(request) };
    ask.send(question(9, about("a"))).unwrap();
    let mut answers = client.stream_checks(asked).await.unwrap().into_inner();
    let first = next(&mut answers).await;
    assert_eq!(first.id, 9, "answered while the stream goes on");

    for id in (0..500).rev() {
        ask.send(question(id, about("a"))).unwrap();
    }
    ask.send(question(1, CheckRequest::default())).unwrap();
    ask.send(StreamChecksRequest { id: 2, request: None }).unwrap();
    ask.send(question(2, about("a"))).unwrap();
    drop(ask);
    let mut left = 999;
    for id in (0..500).rev() {
        let answer = next(&mut answers).await;
        let Some(Checked::Decision(decision)) = answer.checked.unwrap().result else { panic!("no decision") };
        left -= 1;
        assert_eq!((answer.id, decision.remaining), (id, Some(left)));
    }
    for id in [1, 2] {
        let answer = next(&mut answers).await;
        let Some(Checked::Fault(fault)) = answer.checked.unwrap().result else { panic!("no fault") };
        assert_eq!((answer.id, fault.code.as_str()), (id, "missing_field"), "and the stream goes on");
    }
    assert_eq!(next(&mut answers).await.id, 2, "ids are the caller's business");
    assert!(answers.message().await.unwrap().is_none(), "it ends when the questions do");
}

fn decision(decision: Option<CheckResponse>) -> CheckResponse {
    decision.expect("a decision")
}

#[tokio::test]
async fn what_is_reserved_is_settled_once() {
    let rig = Rig::start(RULES);
    let mut client = rig.client().await;
    let request = Some(CheckRequest { cost: Some(100), ..about("a") });
    let reserved = client.reserve(ReserveRequest { request: request.clone() }).await.unwrap().into_inner();
    assert_eq!(decision(reserved.decision).remaining, Some(900));
    let settle = |cost| SettleRequest {
        reservation: reserved.reservation.clone(),
        cost: Some(cost),
        ..SettleRequest::default()
    };
    let status = client.settle(settle(1 << 53)).await.unwrap_err();
    assert!(status.message().starts_with("bad_cost"), "{status:?}");
    let settled = client.settle(settle(30)).await.unwrap().into_inner();
    assert_eq!((settled.settled, settled.refunded, settled.extended), (true, 1, 0));
    assert_eq!(rig.left_to("a").await, 970);
    assert!(!client.settle(settle(0)).await.unwrap().into_inner().settled, "twice changes nothing");
    assert_eq!(rig.left_to("a").await, 970);

    let denied = Some(CheckRequest { cost: Some(5000), ..about("a") });
    let denied = client.reserve(ReserveRequest { request: denied }).await.unwrap().into_inner();
    assert!(!decision(denied.decision).allowed && denied.reservation.is_empty());
    let unknown = SettleRequest { reservation: "tgr_AAAA".to_owned(), cost: Some(1), ..SettleRequest::default() };
    assert_eq!(client.settle(unknown).await.unwrap_err().code(), Code::InvalidArgument);
    let missing = client.reserve(ReserveRequest { request: None }).await.unwrap_err();
    assert_eq!(missing.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn slots_are_held_renewed_and_released() {
    let rules =
        "rules:\n  - { name: jobs, key_by: client_key, limit: { algorithm: concurrency, slots: 1, slot_ttl: 30s } }\n";
    let rig = Rig::start(rules);
    let mut client = rig.client().await;
    let acquire = || AcquireSlotRequest { request: Some(about("a")) };
    let held = client.acquire_slot(acquire()).await.unwrap().into_inner();
    assert!(decision(held.decision).allowed);
    assert_eq!(held.ttl_ms, Some(30_000));
    let second = client.acquire_slot(acquire()).await.unwrap().into_inner();
    assert!(!decision(second.decision).allowed && second.slot.is_empty());
    let slot = held.slot;
    let renewed = client.renew_slot(RenewSlotRequest { slot: slot.clone() }).await.unwrap().into_inner();
    assert_eq!((renewed.renewed, renewed.ttl_ms), (true, Some(30_000)));
    let release = || ReleaseSlotRequest { slot: slot.clone() };
    assert!(client.release_slot(release()).await.unwrap().into_inner().released);
    assert!(!client.release_slot(release()).await.unwrap().into_inner().released, "twice changes nothing");
    assert!(decision(client.acquire_slot(acquire()).await.unwrap().into_inner().decision).allowed);
    let status = client.renew_slot(RenewSlotRequest { slot: "tgr_x".to_owned() }).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn an_explanation_is_what_http_would_say_and_charges_nothing() {
    let rig = Rig::start(RULES);
    let mut client = rig.client().await;
    let explained = client.explain(ExplainRequest { request: Some(about("a")) }).await.unwrap().into_inner();
    let json: serde_json::Value = serde_json::from_str(&explained.json).unwrap();
    assert!(json.to_string().contains("\"only\""), "{json}");
    assert_eq!(rig.left_to("a").await, FULL);
    let status = client.explain(ExplainRequest { request: None }).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
}
