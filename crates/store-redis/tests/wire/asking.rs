//! A server that is well: questions, receipts, commands, and how they travel together.

use tollgate_core::Span;
use tollgate_store::StoreErrorKind;
use tollgate_store_redis::resp::Value;
use tollgate_testkit::redis::Server;

use crate::house::{PATIENT, config, consume, now, start, take, warm};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_is_exact_for_many_callers() {
    let server = Server::start();
    let primary = warm(config(server.port())).await;
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
    assert_eq!(admitted, 100);
    let stats = primary.stats();
    assert_eq!(stats.questions, 32 * 40 + 1);
    assert!(stats.script_calls < stats.questions, "what came together was asked together: {stats:?}");
    assert_eq!((stats.indeterminate, stats.expired, stats.broken, stats.reloads), (0, 0, 0, 0));
}

#[tokio::test]
async fn plain_commands_go_the_same_way() {
    let server = Server::start();
    let primary = warm(config(server.port())).await;
    let reply = primary.command(&[b"SET", b"tg:x", b"1"], PATIENT).await.unwrap();
    assert_eq!(reply, Value::Text("OK".into()));
    let replies = primary.pipeline(&[&[b"GET", b"tg:x"], &[b"NONSENSE"], &[b"DEL", b"tg:x"]], PATIENT).await.unwrap();
    assert_eq!(replies[0], Value::Text("1".into()));
    assert!(matches!(replies[1], Value::Error(_)));
    assert_eq!(replies[2], Value::Integer(1));
    let failure = primary.command(&[b"NONSENSE"], PATIENT).await.unwrap_err();
    assert_eq!(failure.into_error().kind, StoreErrorKind::Indeterminate);
}

#[tokio::test]
async fn the_clock_of_the_store_is_known_from_the_first_contact() {
    let server = Server::start();
    let primary = start(config(server.port()));
    assert_eq!(primary.store_time(), None);
    take(&primary, consume(1), PATIENT).await.unwrap();
    let (ours, theirs) = (now(), primary.store_time().unwrap());
    let apart = ours.since(theirs).plus(theirs.since(ours));
    assert!(apart < Span::from_millis(500), "{apart} apart on one machine");
}
