//! `MULTI`, `EXEC` and `DISCARD`: as Redis answers them, and nothing is charged before `EXEC`.

use std::time::Duration;

use tokio::net::TcpStream;
use tollgate_lab::redis::RedisServer as Redis;
use tollgate_net::NetLimits;

use crate::rig::{Caller, Rig, command, within};

fn send(words: &str) -> Vec<u8> {
    command(&words.split(' ').collect::<Vec<_>>())
}

/// What both of us know, in every order that makes a difference.
const TALKS: &[&[&str]] = &[
    &["MULTI", "PING", "ECHO a", "EXEC", "PING"],
    &["MULTI", "EXEC", "EXEC"],
    &["DISCARD", "EXEC"],
    &["MULTI", "PING", "DISCARD", "PING", "EXEC"],
    &["MULTI", "PING", "NOSUCH a b", "ECHO x", "EXEC", "PING", "MULTI", "PING", "EXEC"],
    &["MULTI", "ECHO", "PING", "EXEC"],
    &["MULTI", "NOSUCH", "DISCARD", "MULTI", "PING", "EXEC"],
    &["MULTI", "SELECT x", "PING a b", "PING", "EXEC"],
    &["MULTI", "DISCARD a", "EXEC"],
    &["MULTI", "PING", "RESET", "EXEC"],
    &["MULTI", "CLIENT SETNAME me", "CLIENT GETNAME", "EXEC", "CLIENT GETNAME"],
    &["multi", "Ping", "eXeC"],
    &["MULTI", "HELLO 3", "CLIENT GETNAME", "EXEC"],
    &["MULTI a", "PING", "EXEC"],
];

/// One command after the other, and all of them at once.
#[tokio::test]
async fn transactions_are_answered_as_redis_answers_them() {
    let (rig, redis) = (Rig::start(), Redis::start());
    for talk in TALKS {
        let mut ours = rig.caller().await;
        let mut theirs = Caller { stream: TcpStream::connect(("127.0.0.1", redis.port())).await.unwrap() };
        let mut expected = Vec::new();
        for sent in *talk {
            ours.send(&send(sent)).await;
            theirs.send(&send(sent)).await;
            let (ours, theirs) = (ours.reply().await, theirs.reply().await);
            if !(sent.starts_with("HELLO") || theirs.contains("proto")) {
                assert_eq!(ours, theirs, "{sent} in {talk:?}");
            }
            expected.push(ours);
        }
        let mut together = rig.caller().await;
        together.send(&talk.iter().map(|sent| send(sent)).collect::<Vec<_>>().concat()).await;
        for (reply, sent) in expected.iter().zip(*talk) {
            let came = together.reply().await;
            assert!(came == *reply || reply.contains("proto"), "{sent} in {talk:?}: {came}");
        }
    }
}

/// Redis 7 refuses a nested `MULTI` and goes on.
#[tokio::test]
async fn a_transaction_in_a_transaction_is_refused() {
    let rig = Rig::start();
    let mut caller = rig.caller().await;
    caller.says(&send("MULTI"), b"+OK\r\n").await;
    caller.says(&send("PING"), b"+QUEUED\r\n").await;
    caller.says(&send("MULTI"), b"-ERR MULTI calls can not be nested\r\n").await;
    caller.says(&send("EXEC"), b"*1\r\n+PONG\r\n").await;
}

#[tokio::test]
async fn nothing_is_charged_before_exec() {
    let (rig, _clock) = Rig::on_clock(|_, _| {});
    let throttle = "CL.THROTTLE k 4 5 3600";
    let peek = send("CL.THROTTLE k 4 5 3600 0");
    let full = b"*5\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n";
    let mut caller = rig.caller().await;
    for end in ["DISCARD", "NOSUCH", "RESET"] {
        caller
            .says(
                &[send("MULTI"), send(throttle), send("TG.CHECK client_key=k")].concat(),
                b"+OK\r\n+QUEUED\r\n+QUEUED\r\n",
            )
            .await;
        rig.says(&peek, full).await;
        caller.send(&send(end)).await;
        caller.reply().await;
        if end == "NOSUCH" {
            caller.says(&send("EXEC"), b"-EXECABORT Transaction discarded because of previous errors.\r\n").await;
        }
        rig.says(&peek, full).await;
    }
    caller.send(&[send("MULTI"), send(throttle), send("TG.CHECK client_key=k")].concat()).await;
    drop(caller); // gone with a transaction that is open
    rig.says(&peek, full).await;
    let mut caller = rig.caller().await;
    let all =
        [send("MULTI"), send(throttle), send(throttle), send("TG.CHECK client_key=k COST 3"), send("EXEC")].concat();
    caller.says(&all, b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n").await;
    caller.says(b"", b"*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:720\r\n*5\r\n:0\r\n:5\r\n:3\r\n:-1\r\n:1440\r\n").await;
    assert!(
        caller
            .reply()
            .await
            .starts_with("*20\r\n$7\r\nallowed\r\n:1\r\n$5\r\nlimit\r\n:10\r\n$9\r\nremaining\r\n:7\r\n")
    );
}

/// Through a store that has to be waited for, and with more answers than leave at once.
#[tokio::test]
async fn a_long_transaction_through_redis() {
    let redis = Redis::start();
    let rig = Rig::open(|config, _| {
        config.store.place = redis.url().parse().unwrap();
        config.store.timeout = Duration::from_secs(10); // a busy machine is not to decide without the store
    })
    .await;
    let mut caller = rig.caller().await;
    let rounds = 1500;
    let mut sent = send("MULTI");
    for _ in 0..rounds {
        sent.extend(send("CL.THROTTLE k 999 1000 3600000"));
        sent.extend(send("TG.PEEK client_key=k"));
        sent.extend(send("ECHO end-of-round"));
    }
    sent.extend(send("EXEC"));
    sent.extend(send("PING"));
    let (mut reading, mut writing) = caller.stream.into_split();
    let writing = tokio::spawn(async move {
        tokio::io::AsyncWriteExt::write_all(&mut writing, &sent).await.unwrap();
        writing
    });
    let mut came = Vec::new();
    while !came.ends_with(b"+PONG\r\n") {
        let read = within(tokio::io::AsyncReadExt::read_buf(&mut reading, &mut came)).await.unwrap();
        assert_ne!(read, 0, "{}", came.escape_ascii());
    }
    caller = Caller { stream: reading.reunite(writing.await.unwrap()).unwrap() };
    let came = String::from_utf8(came).unwrap();
    assert_eq!(came.matches("+QUEUED\r\n").count(), 3 * rounds);
    assert!(came.contains(&format!("*{}\r\n*5\r\n:0\r\n:1000\r\n:999\r\n", 3 * rounds)));
    assert_eq!(came.matches("*5\r\n:0\r\n").count(), 1000, "admitted");
    assert_eq!(came.matches("*5\r\n:1\r\n").count(), rounds - 1000, "refused");
    assert_eq!(came.matches("$12\r\nend-of-round\r\n").count(), rounds);
    caller.says(&send("EXEC"), b"-ERR EXEC without MULTI\r\n").await;
}

#[tokio::test]
async fn what_is_queued_is_bounded() {
    let rig = Rig::start();
    let mut caller = rig.caller().await;
    caller.says(&send("MULTI"), b"+OK\r\n").await;
    let large = command(&["ECHO", &"x".repeat(60_000)]);
    for _ in 0..17 {
        caller.says(&large, b"+QUEUED\r\n").await;
    }
    caller.says(&large, b"-ERR too much is queued: a transaction takes 1 MiB of commands\r\n").await;
    caller.says(&large, b"+QUEUED\r\n").await;
    caller.says(&send("EXEC"), b"-EXECABORT Transaction discarded because of previous errors.\r\n").await;
    caller.says(&send("PING"), b"+PONG\r\n").await;
}

/// What is queued counts as what is on its way: many connections together may not queue more than there is room for.
#[tokio::test]
async fn what_all_connections_queue_is_bounded() {
    let rig = Rig::with(|config, _| config.net = NetLimits { max_in_transit: 1 << 20, ..NetLimits::default() });
    let large = command(&["ECHO", &"x".repeat(60_000)]);
    let mut callers = Vec::new();
    for _ in 0..40 {
        let mut caller = rig.caller().await;
        let _ = caller.try_send(&[send("MULTI"), large.clone(), large.clone()].concat()).await;
        callers.push(caller);
    }
    let no_room = async { while rig.metric("tollgate_resp_protocol_errors_total{reason=\"no_room\"}").await < 20.0 {} };
    within(no_room).await;
    drop(callers);
    rig.answers_others().await;
}

/// `EXEC` must come: the time is paused, and passes when nothing else is to be done.
#[tokio::test]
async fn a_transaction_does_not_stay_open_for_ever() {
    let rig = Rig::start();
    let mut caller = rig.caller().await;
    caller.says(&[send("MULTI"), send("PING")].concat(), b"+OK\r\n+QUEUED\r\n").await;
    let mut other = rig.caller().await;
    other.says(&send("PING"), b"+PONG\r\n").await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    assert_eq!(caller.rest().await.unwrap(), b"-ERR Protocol error: EXEC did not come in time\r\n");
    other.says(&send("PING"), b"+PONG\r\n").await;
}
