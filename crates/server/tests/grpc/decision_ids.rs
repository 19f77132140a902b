//! Ids of decisions in messages, by the same setting as over HTTP.

use std::collections::BTreeSet;

use tollgate_proto::v1::checked::Result as Checked;
use tollgate_proto::v1::{BatchCheckRequest, CheckResponse, ReserveRequest, StreamChecksRequest};

use crate::rig::{RULES, Rig, about, check};
use crate::wire::sent;

/// The decisions of one check, a batch of two, a stream of one, and a reservation.
async fn decisions(rig: &Rig) -> Vec<CheckResponse> {
    let mut client = rig.client().await;
    let mut decisions = vec![check(&mut client, about("a")).await];
    let batch = BatchCheckRequest { requests: vec![about("a"); 2] };
    let batch = client.batch_check(batch).await.unwrap().into_inner().results;
    let (ask, asked) = sent();
    ask.send(StreamChecksRequest { id: 1, request: Some(about("a")) }).unwrap();
    drop(ask);
    let mut stream = client.stream_checks(asked).await.unwrap().into_inner();
    let streamed = stream.message().await.unwrap().unwrap().checked;
    for checked in batch.into_iter().chain(streamed) {
        let Some(Checked::Decision(decision)) = checked.result else { panic!("no decision") };
        decisions.push(decision);
    }
    let reserved = client.reserve(ReserveRequest { request: Some(about("a")) }).await.unwrap().into_inner();
    decisions.extend(reserved.decision);
    decisions
}

#[tokio::test]
async fn messages_name_decisions_only_where_that_is_wanted() {
    let plain = decisions(&Rig::start(RULES)).await;
    assert!(plain.len() == 5 && plain.iter().all(|decision| decision.decision_id.is_empty()), "{plain:?}");
    let named = decisions(&Rig::with(RULES, |config, _| config.answer.decision_ids = true)).await;
    let ids: BTreeSet<&str> = named.iter().map(|decision| decision.decision_id.as_str()).collect();
    assert_eq!(ids.len(), 5, "each has its own: {named:?}");
    assert!(ids.iter().all(|id| id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())), "{ids:?}");
}
