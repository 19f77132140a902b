//! Servers that reply with errors. Names begin with the row of the fault matrix.

use tollgate_core::Span;
use tollgate_lab::patience::Watch;
use tollgate_lab::redis::RedisServer;
use tollgate_store::StoreErrorKind::{Indeterminate, Refused, Unavailable};
use tollgate_store_redis::breaker::Phase;
use tollgate_store_redis::failure::Failure;
use tollgate_store_redis::key::BucketKey;
use tollgate_store_redis::{ErrorCode, Login, Password, Redirect, RedisConfig};

use crate::rig::{CONNECTS_APART, PATIENT, config, consume, recovered, request, take, until, used, warm};

const WITHIN: Span = Span::from_millis(25);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f22_forgotten_scripts_are_sent_once_per_loss() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    let callers: Vec<_> = (0..16)
        .map(|caller| {
            let primary = primary.clone();
            tokio::spawn(async move {
                for turn in 0..400 {
                    let bucket = 1000 + caller * 1000 + turn;
                    assert!(take(&primary, consume(bucket), PATIENT).await.unwrap(), "no error reaches a caller");
                }
            })
        })
        .collect();
    let mut client = server.client();
    let mut flushes = 0;
    let flush = || {
        client.call(&["SCRIPT", "FLUSH"]);
        flushes += 1;
        callers.iter().all(|caller| caller.is_finished())
    };
    until("all callers are done", flush).await;
    for caller in callers {
        caller.await.unwrap();
    }
    let stats = primary.stats();
    assert!(stats.reloads >= 1 && stats.reloads <= flushes, "{} texts after {flushes} flushes", stats.reloads);
    assert_eq!((stats.indeterminate, stats.broken, stats.openings), (0, 0, 0));
    assert_eq!(stats.requests, 16 * 400 + 1, "a request counts once, however often it is sent");
}

#[tokio::test]
async fn f23_full_memory_is_reported_and_nothing_is_written() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    assert!(take(&primary, consume(1), PATIENT).await.unwrap());
    let mut client = server.client();
    client.call(&["CONFIG", "SET", "maxmemory", "1"]);
    for _ in 0..5 {
        let error = take(&primary, consume(1), PATIENT).await.unwrap_err();
        assert_eq!(error.kind, Refused, "{error}");
        assert!(error.detail.contains("memory is full"), "{error}");
    }
    assert_eq!(primary.health().phase, Phase::Open);
    assert_eq!(primary.stats().errors_of(ErrorCode::OutOfMemory), 5);
    let probes = primary.stats().probes;
    until("the server is probed", || primary.stats().probes >= probes + 3).await;
    assert_eq!(primary.health().phase, Phase::Open, "probes run the real script");
    client.call(&["CONFIG", "SET", "maxmemory", "0"]);
    recovered(&primary).await;
    assert_eq!(used(&primary, 1).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f27_a_server_busy_with_a_script_of_others_is_left_alone() {
    let server = RedisServer::start_with(&["--busy-reply-threshold", "10"]);
    let primary = warm(config(server.port())).await;
    let mut other = server.client();
    let busy = tokio::task::spawn_blocking(move || other.call(&["EVAL", "while true do end", "0"]));
    let mut third = server.client();
    until("the server is busy", || third.call(&["GET", "x"]).error_word() == Some(b"BUSY")).await;
    for _ in 0..8 {
        let error = take(&primary, consume(1), WITHIN).await.unwrap_err();
        assert!(matches!(error.kind, Unavailable | Indeterminate), "{error}");
    }
    until("open", || primary.health().phase == Phase::Open).await;
    // A probe of the connection that is there, or a new connection, whose handshake is refused.
    let attempts = || primary.stats().probes + primary.stats().connects;
    let before = attempts();
    until("the server is asked again", || attempts() >= before + 3).await;
    assert!(primary.stats().errors_of(ErrorCode::Busy) > 0);
    assert!(!busy.is_finished(), "the script still runs");
    server.client().call(&["SCRIPT", "KILL"]);
    busy.await.unwrap();
    recovered(&primary).await;
    assert_eq!(used(&primary, 1).await, 0);
}

#[tokio::test]
async fn f29_a_wrong_password_is_reported_and_never_shown() {
    let server = RedisServer::start();
    let mut client = server.client();
    client.call(&["ACL", "SETUSER", "gate", "on", ">hunter2", "~tg:*", "+@all"]);
    let mut config = config(server.port());
    config.url.login = Some(Login { user: Some("gate".into()), password: Password::new("hunter2") });
    let primary = warm(config.clone()).await;
    client.call(&["ACL", "SETUSER", "gate", "resetpass", ">other"]);
    client.call(&["CLIENT", "KILL", "USER", "gate"]);
    until("open", || primary.health().phase == Phase::Open).await;
    let error = take(&primary, consume(1), WITHIN).await.unwrap_err();
    assert_eq!(error.kind, Refused);
    assert!(error.detail.contains("does not accept user or password"), "{error}");
    assert!(primary.stats().errors_of(ErrorCode::WrongPass) > 0);
    let shown = format!("{error} {error:?} {:?} {config:?} {}", primary.health(), config.url);
    assert!(!shown.contains("hunter2"), "{shown}");
    client.call(&["ACL", "SETUSER", "gate", ">hunter2"]);
    recovered(&primary).await;
}

#[tokio::test]
async fn f29_missing_permissions_are_reported() {
    let server = RedisServer::start();
    let mut client = server.client();
    client.call(&["ACL", "SETUSER", "gate", "on", ">hunter2", "~tg:*", "+@all"]);
    let mut config = config(server.port());
    config.url.login = Some(Login { user: Some("gate".into()), password: Password::new("hunter2") });
    let primary = warm(config).await;
    client.call(&["ACL", "SETUSER", "gate", "-evalsha"]);
    let error = take(&primary, consume(1), PATIENT).await.unwrap_err();
    assert_eq!((error.kind, primary.stats().errors_of(ErrorCode::NoPerm)), (Refused, 1));
}

#[tokio::test]
async fn f26_too_few_replicas_are_reported() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    server.client().call(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let error = take(&primary, consume(1), PATIENT).await.unwrap_err();
    assert_eq!((error.kind, primary.stats().errors_of(ErrorCode::NoReplicas)), (Refused, 1));
}

#[tokio::test]
async fn f30_too_many_clients_is_saturation_and_no_storm() {
    let server = RedisServer::start_with(&["--maxclients", "3"]);
    let clients = [server.client(), server.client(), server.client()];
    let config = RedisConfig { within: Span::from_millis(200), ..config(server.port()) };
    let primary = crate::rig::start(config);
    until("open", || primary.health().phase == Phase::Open).await;
    let (watch, connects) = (Watch::start(), primary.stats().connects);
    until("six further attempts", || primary.stats().connects >= connects + 6).await;
    assert!(watch.elapsed() >= 5 * CONNECTS_APART, "six attempts within {:?}", watch.elapsed());
    assert!(primary.stats().errors_of(ErrorCode::MaxClients) > 0, "{:?}", primary.health());
    drop(clients);
    recovered(&primary).await;
}

#[tokio::test]
async fn f15_a_replica_returns_the_request_as_redirected() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    server.client().call(&["REPLICAOF", "127.0.0.1", "1"]);
    let charge = consume(1);
    let asked = primary.ask(request(charge), BucketKey::of(&charge).slot(), PATIENT).await;
    let Err(Failure::Redirected(elsewhere)) = asked else { panic!("{asked:?}") };
    assert_eq!(elsewhere.redirect, Redirect::ReadOnly);
    assert_eq!(elsewhere.work, request(charge));
    assert!(primary.health().replica);
    server.client().call(&["REPLICAOF", "NO", "ONE"]);
    until("primary again", || !primary.health().replica).await;
}
