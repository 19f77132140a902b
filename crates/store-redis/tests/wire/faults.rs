//! Faults of networks and servers. Names begin with the row of the fault matrix.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tollgate_core::Span;
use tollgate_lab::patience;
use tollgate_lab::redis::RedisServer;
use tollgate_store::StoreErrorKind::{Indeterminate, Saturated, Unavailable};
use tollgate_store_redis::breaker::Phase;
use tollgate_store_redis::{Primary, RedisConfig};

use crate::proxy::{Mode, Proxy};
use crate::rig::{CONNECTS_APART, PATIENT, config, consume, recovered, take, until, used, warm};

const WITHIN: Span = Span::from_millis(25);

/// Asks every bucket at once; each has been used as often as its number says.
async fn replies_match_their_requests(primary: &Primary) {
    for bucket in 101..120 {
        for _ in 100..bucket {
            assert!(take(primary, consume(bucket), PATIENT).await.unwrap());
        }
    }
    for (bucket, used) in futures(primary, 101..120).await {
        assert_eq!(used, bucket - 100);
    }
}

async fn futures(primary: &Primary, buckets: std::ops::Range<u64>) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for bucket in buckets {
        found.push((bucket, used(primary, bucket).await));
    }
    found
}

#[tokio::test]
async fn f06_a_lost_reply_is_charged_once_and_never_sent_again() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let primary = warm(config(proxy.port)).await;
    assert!(take(&primary, consume(1), WITHIN).await.unwrap());
    proxy.set(Mode::DropReplies);
    assert_eq!(take(&primary, consume(1), WITHIN).await.unwrap_err().kind, Indeterminate);
    proxy.set(Mode::Pass);
    recovered(&primary).await;
    assert_eq!(used(&primary, 1).await, 2, "it was executed, once");
    let stats = primary.stats();
    assert_eq!((stats.resent, stats.indeterminate), (0, 1));
    replies_match_their_requests(&primary).await;
}

#[tokio::test]
async fn f08_a_connection_that_ends_within_a_reply_poisons_nothing() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let primary = warm(config(proxy.port)).await;
    let mut passed = 0;
    for round in 1..=5 {
        proxy.set(Mode::CutReply);
        // The cut may hit a command of the watch task, and the request behind it may then be executed or not.
        match take(&primary, consume(1), PATIENT).await {
            Ok(_) => passed += 1,
            Err(error) => assert_eq!(error.kind, Indeterminate),
        }
        recovered(&primary).await;
        let used = used(&primary, 1).await;
        assert!((passed..=round).contains(&used), "{used} used, {passed} passed in {round} rounds");
    }
    replies_match_their_requests(&primary).await;
}

#[tokio::test]
async fn f08_an_out_of_step_connection_is_not_read_any_further() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let primary = warm(config(proxy.port)).await;
    for mode in [Mode::Garbage, Mode::Extra] {
        let broken = primary.stats().broken;
        proxy.set(mode.clone());
        for _ in 0..20 {
            match take(&primary, consume(1), PATIENT).await {
                Ok(allowed) => assert!(allowed),
                Err(error) => assert!(matches!(error.kind, Indeterminate | Unavailable), "{error}"),
            }
        }
        assert!(primary.stats().broken > broken, "{mode:?}");
        recovered(&primary).await;
    }
    replies_match_their_requests(&primary).await;
}

#[tokio::test]
async fn f03_a_server_that_stops_and_goes_on_charges_nothing_late() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    assert!(take(&primary, consume(1), WITHIN).await.unwrap());
    server.stop();
    let stalled_at = watch_for_stalls();
    let began = Instant::now();
    let mut opened = None;
    while began.elapsed() < Duration::from_millis(600) || opened.is_none() {
        let asked = Instant::now();
        let error = take(&primary, consume(1), WITHIN).await.unwrap_err();
        let took = asked.elapsed();
        assert!(matches!(error.kind, Indeterminate | Unavailable), "{error}");
        sleep(Duration::from_millis(1)).await;
        assert!(took < Duration::from_millis(50) || *stalled_at.borrow() >= asked, "{took:?}");
        if opened.is_none() && primary.health().phase == Phase::Open {
            opened = Some(began.elapsed());
            let is_soon = began.elapsed() <= Duration::from_millis(150);
            assert!(is_soon || *stalled_at.borrow() >= began, "open after {opened:?}");
        }
        assert!(began.elapsed() < Duration::from_secs(20), "the breaker opens");
    }
    server.cont();
    recovered(&primary).await;
    assert_eq!(used(&primary, 1).await, 1, "what came late charged nothing");
}

/// How many scripts the server has run.
fn scripts_run_by(server: &RedisServer) -> u64 {
    let figures = server.client().text(&["INFO", "commandstats"]);
    let calls = figures.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")?.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

#[tokio::test]
async fn f04_a_call_that_comes_after_its_deadline_charges_nothing() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let primary = warm(config(proxy.port)).await;
    assert!(take(&primary, consume(1), WITHIN).await.unwrap());
    let before = scripts_run_by(&server);
    proxy.set(Mode::DelayRequests(Duration::from_millis(60)));
    assert_eq!(take(&primary, consume(1), WITHIN).await.unwrap_err().kind, Indeterminate);
    until("the call has arrived, late", || scripts_run_by(&server) > before).await;
    proxy.set(Mode::Pass);
    recovered(&primary).await;
    assert_eq!(used(&primary, 1).await, 1);
}

#[tokio::test]
async fn f04_a_slow_server_that_is_fast_enough_is_still_asked() {
    // A fifth of the time is left, as with 20 of 25 ms; but this machine may be busy with other tests.
    let within = Span::from_millis(240);
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    proxy.set(Mode::DelayRequests(Duration::from_millis(190)));
    let config = RedisConfig { within, connect_timeout: Span::from_secs(2), ..config(proxy.port) };
    let primary = warm(config).await;
    let callers: Vec<_> = (0..10)
        .map(|turn| {
            let primary = primary.clone();
            tokio::spawn(async move {
                sleep(Duration::from_millis(30 * turn)).await;
                take(&primary, consume(1), within).await
            })
        })
        .collect();
    for caller in callers {
        assert!(caller.await.unwrap().unwrap(), "no caller waits for the batch before");
    }
    assert_eq!(primary.health().phase, Phase::Closed);
    assert_eq!(used(&primary, 1).await, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f05_jitter_delays_no_caller_and_does_not_flap() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let primary = warm(config(proxy.port)).await;
    proxy.set(Mode::JitterRequests(Duration::from_millis(200)));
    let stalled_at = watch_for_stalls();
    let (began, mut asked, mut late) = (Instant::now(), 0, 0);
    while began.elapsed() < Duration::from_secs(8) {
        let before = Instant::now();
        let _ = take(&primary, consume(1), WITHIN).await;
        asked += 1;
        let is_late = before.elapsed() > Duration::from_millis(50);
        sleep(Duration::from_millis(1)).await;
        late += u32::from(is_late && *stalled_at.borrow() < before);
    }
    assert!(late * 1000 <= asked, "{late} of {asked} took more than 50 ms");
    let openings = primary.stats().openings;
    assert!((1..=5).contains(&openings), "{openings} openings");
    proxy.set(Mode::Pass);
}

/// When a timer of this runtime was late last: a caller is late as well then, and the store has nothing to do with it.
fn watch_for_stalls() -> watch::Receiver<Instant> {
    let (late, last) = watch::channel(Instant::now());
    tokio::spawn(async move {
        let mut ticks = interval(Duration::from_millis(2));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !late.is_closed() {
            let before = Instant::now();
            ticks.tick().await;
            if before.elapsed() > Duration::from_millis(12) {
                late.send_replace(Instant::now());
            }
        }
    });
    last
}

/// F59: replies that this node did not read in time are not failures of the store.
#[tokio::test]
async fn f59_a_node_that_is_late_itself_goes_on_asking_the_store() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    let (mut answered, mut counted) = (0, 0);
    for _ in 0..400 {
        let asking = primary.clone();
        let caller = tokio::spawn(async move { take(&asking, consume(1), WITHIN).await });
        let sent = primary.stats().flushes;
        while primary.stats().flushes == sent {
            tokio::task::yield_now().await;
        }
        let slowest = slowest_ping_of(&server, Duration::from_millis(40)); // the only thread: nothing of this node runs
        let is_decided = caller.await.unwrap().is_ok();
        // On a busy machine the server may be late too: such a round says nothing.
        if slowest < Duration::from_millis(10) {
            (answered, counted) = (answered + u32::from(is_decided), counted + 1);
        }
        if counted == 20 {
            break;
        }
    }
    let stats = primary.stats();
    assert_eq!((stats.openings, stats.broken, primary.health().phase), (0, 0, Phase::Closed));
    assert!(answered * 10 >= counted * 9, "{answered} of {counted} decided by the store");
}

/// Pings the server from this thread for so long, and returns the longest time that a reply took.
fn slowest_ping_of(server: &RedisServer, span: Duration) -> Duration {
    let (mut client, watch, mut slowest) = (server.client(), patience::Watch::start(), Duration::ZERO);
    while watch.elapsed() < span {
        let before = watch.elapsed();
        client.succeed(&["PING"]);
        slowest = slowest.max(watch.elapsed() - before);
    }
    slowest
}

#[tokio::test]
async fn a_caller_with_a_short_timeout_does_not_end_the_connection() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let primary = warm(RedisConfig { within: Span::from_millis(500), ..config(proxy.port) }).await;
    proxy.set(Mode::DelayRequests(Duration::from_millis(40)));
    for _ in 0..8 {
        let error = take(&primary, consume(1), Span::from_millis(10)).await.unwrap_err();
        assert!(matches!(error.kind, Indeterminate | Unavailable), "{error}");
    }
    assert!(take(&primary, consume(2), PATIENT).await.unwrap());
    assert_eq!((primary.stats().broken, primary.health().phase), (0, Phase::Closed));
    assert_eq!(used(&primary, 1).await, 0, "what came late charged nothing");
}

#[tokio::test]
async fn f01_a_killed_server_delays_no_caller() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    assert!(take(&primary, consume(1), WITHIN).await.unwrap());
    let stalled_at = watch_for_stalls();
    drop(server);
    let killed = Instant::now();
    while primary.health().phase != Phase::Open {
        let is_soon = killed.elapsed() < Duration::from_millis(150);
        assert!(is_soon || *stalled_at.borrow() >= killed, "still not open: {:?}", primary.stats());
        assert!(killed.elapsed() < Duration::from_secs(20), "never open: {:?}", primary.stats());
        let _ = take(&primary, consume(1), WITHIN).await;
    }
    for _ in 0..1000 {
        let decided = std::pin::pin!(take(&primary, consume(1), WITHIN)).poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Err(error)) = decided else { panic!("a caller waits: {decided:?}") };
        assert_eq!(error.kind, Unavailable, "nothing was sent: {error}");
    }
}

#[tokio::test]
async fn f02_another_server_at_the_same_place_is_used_and_noticed() {
    let first = RedisServer::start();
    let proxy = Proxy::start(first.port()).await;
    let primary = warm(config(proxy.port)).await;
    until("the first look", || primary.nodes().is_some()).await;
    drop(first);
    until("open", || primary.health().phase == Phase::Open).await;
    let second = RedisServer::start();
    proxy.lead_to(second.port());
    recovered(&primary).await;
    assert!(take(&primary, consume(1), PATIENT).await.unwrap());
    until("the change of data is counted", || primary.stats().epoch_changes == 1).await;
}

#[tokio::test]
async fn f07_a_black_hole_ends_in_time() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let primary = warm(config(proxy.port)).await;
    proxy.set(Mode::Hole);
    let stalled_at = watch_for_stalls();
    let began = Instant::now();
    assert_eq!(take(&primary, consume(1), WITHIN).await.unwrap_err().kind, Indeterminate);
    let took = began.elapsed();
    until("an end in time", || took < Duration::from_millis(100) || *stalled_at.borrow() >= began).await;
    until("open", || primary.health().phase == Phase::Open).await;
    let made = proxy.accepted();
    proxy.set(Mode::Pass);
    recovered(&primary).await;
    assert!(proxy.accepted() - made <= 10);
    assert_eq!(used(&primary, 1).await, 0);
}

#[tokio::test]
async fn f09_a_trickle_is_given_up() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let primary = warm(config(proxy.port)).await;
    proxy.set(Mode::Trickle);
    assert_eq!(take(&primary, consume(1), WITHIN).await.unwrap_err().kind, Indeterminate);
    until("closed", || primary.stats().broken > 0).await;
    proxy.set(Mode::Pass);
    recovered(&primary).await;
    assert_eq!(used(&primary, 1).await, 1);
}

#[tokio::test]
async fn f10_a_server_that_hangs_up_is_not_stormed() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port()).await;
    let primary = warm(config(proxy.port)).await;
    proxy.set(Mode::HangUp);
    proxy.lead_to(1);
    drop(server);
    let (began, before) = (Instant::now(), proxy.accepted());
    let is_tried = async || {
        let _ = take(&primary, consume(1), WITHIN).await;
        proxy.accepted() >= before + 6
    };
    patience::until_async("six attempts", Duration::from_secs(60), is_tried).await;
    assert!(began.elapsed() >= 5 * CONNECTS_APART, "six attempts within {:?}", began.elapsed());
}

#[tokio::test]
async fn waiting_is_bounded() {
    let server = RedisServer::start();
    let primary = warm(RedisConfig { max_waiting: 8, ..config(server.port()) }).await;
    server.stop();
    let callers: Vec<_> = (0..40)
        .map(|_| {
            let primary = primary.clone();
            tokio::spawn(async move { take(&primary, consume(1), Span::from_millis(20)).await.unwrap_err().kind })
        })
        .collect();
    let mut kinds = Vec::new();
    for caller in callers {
        kinds.push(caller.await.unwrap());
    }
    server.cont();
    let saturated = kinds.iter().filter(|kind| **kind == Saturated).count();
    assert!(saturated >= 20, "{kinds:?}");
    assert_eq!(primary.stats().saturated as usize, saturated);
}

#[tokio::test]
async fn a_caller_that_leaves_before_its_request_is_sent_is_charged_nothing() {
    let server = RedisServer::start();
    let primary = warm(config(server.port())).await;
    let asking = { take(&primary, consume(1), PATIENT) };
    let mut asking = Box::pin(asking);
    let first = std::future::poll_fn(|cx| std::task::Poll::Ready(asking.as_mut().poll(cx).is_pending())).await;
    assert!(first, "the driver has not run yet");
    drop(asking);
    assert!(take(&primary, consume(2), PATIENT).await.unwrap());
    assert_eq!(used(&primary, 1).await, 0);
}
