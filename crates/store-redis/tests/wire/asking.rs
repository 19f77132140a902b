//! A healthy server: requests, receipts, commands, and how they share calls.

use std::sync::Arc;
use tollgate_lab::redis::RedisServer;

use tollgate_core::{Receipt, Span};
use tollgate_resp::RespValue;
use tollgate_store::StoreErrorKind;
use tollgate_store_redis::key::BucketKey;
use tollgate_store_redis::script::ScriptAnswer;
use tollgate_store_redis::{Primary, RedisConfig};

use crate::rig::{PATIENT, config, consume, now, request, start, take, until, used, warm};

/// How many requests of 32 callers with 40 each pass.
async fn admitted_to_many(primary: &Arc<Primary>) -> u32 {
    let callers: Vec<_> = (0..32)
        .map(|_| {
            let primary = primary.clone();
            tokio::spawn(async move {
                let mut admitted = 0;
                for _ in 0..40 {
                    admitted += u32::from(take(&primary, consume(1), PATIENT).await.unwrap());
                }
                admitted
            })
        })
        .collect();
    let mut admitted = 0;
    for caller in callers {
        admitted += caller.await.unwrap();
    }
    admitted
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_is_exact_for_many_callers() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    assert_eq!(admitted_to_many(&primary).await, 100);
    let stats = primary.stats();
    assert_eq!(stats.requests, 32 * 40 + 1);
    assert!(stats.script_calls < stats.requests, "what came together was asked together: {stats:?}");
    assert_eq!((stats.indeterminate, stats.expired, stats.broken, stats.reloads), (0, 0, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_connections_share_the_work_and_the_limit() {
    let server = RedisServer::start();
    let primary = warm(RedisConfig { connections: 3, ..config(server.port()) }).await;
    assert_eq!(admitted_to_many(&primary).await, 100);
    let clients = server.client().call(&["CLIENT", "LIST"]);
    let clients = String::from_utf8_lossy(clients.text().unwrap()).matches("name=tollgate-node").count();
    assert_eq!(clients, 3);
}

#[tokio::test]
async fn receipts_give_back_what_was_charged() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    let charge = consume(1);
    let slot = BucketKey::of(&charge).slot();
    assert!(take(&primary, charge, PATIENT).await.unwrap());
    let Ok(ScriptAnswer::Taken { outcomes, .. }) = primary.ask(request(charge), slot, PATIENT).await else { panic!() };
    assert_eq!(used(&primary, 1).await, 2);
    let receipt = || vec![Receipt { number: Some(7), ..Receipt::of(&charge, &outcomes[0]) }];
    assert_eq!(primary.give_back(receipt(), slot, PATIENT).await.unwrap(), 1);
    assert_eq!(primary.give_back(receipt(), slot, PATIENT).await.unwrap(), 0, "once");
    assert_eq!(used(&primary, 1).await, 1);
}

#[tokio::test]
async fn a_retired_primary_accepts_no_calls_and_leaves_no_task() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    primary.retire();
    assert_eq!(take(&primary, consume(1), PATIENT).await.unwrap_err().kind, StoreErrorKind::Unavailable);
    until("the connection is closed", || {
        let clients = server.client().call(&["CLIENT", "LIST"]);
        !String::from_utf8_lossy(clients.text().unwrap()).contains("tollgate")
    })
    .await;
    drop(primary);
    let tasks = tokio::runtime::Handle::current().metrics();
    until("the tasks have ended", || tasks.num_alive_tasks() == 0).await;
}

#[tokio::test]
async fn plain_commands_go_the_same_way() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    let reply = primary.command(&[b"SET", b"tg:x", b"1"], PATIENT).await.unwrap();
    assert_eq!(reply, RespValue::Text("OK".into()));
    // An empty pipeline has no reply, and leaves those of others alone.
    assert_eq!(primary.pipeline(&[], PATIENT).await.unwrap(), []);
    let replies = primary.pipeline(&[&[b"GET", b"tg:x"], &[b"NONSENSE"], &[b"DEL", b"tg:x"]], PATIENT).await.unwrap();
    assert_eq!(replies[0], RespValue::Text("1".into()));
    assert!(matches!(replies[1], RespValue::Error(_)));
    assert_eq!(replies[2], RespValue::Integer(1));
    let failure = primary.command(&[b"NONSENSE"], PATIENT).await.unwrap_err();
    assert_eq!(failure.into_error().kind, StoreErrorKind::Indeterminate);
}

#[tokio::test]
async fn the_clock_of_the_store_is_known_from_the_first_contact() {
    let server = RedisServer::start();
    let primary = start(config(server.port()));
    assert_eq!(primary.store_time(), None);
    take(&primary, consume(1), PATIENT).await.unwrap();
    let (ours, theirs) = (now(), primary.store_time().unwrap());
    let apart = ours.since(theirs).plus(theirs.since(ours));
    assert!(apart < Span::from_millis(500), "{apart} apart on one machine");
}
