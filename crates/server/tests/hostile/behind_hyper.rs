//! The same hostile clients against HTTP/1.1 by hyper, which the admin and metrics listeners use: the data API is put
//! behind it, so that the corpus and its statuses hold for both implementations.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;
use tollgate_engine::Engine;
use tollgate_http::{DataApi, DataApiConfig};
use tollgate_net::{
    Address, ByteBudget, ConnectionHandler, ConnectionLimiter, Drain, Listener, ListenerContext, NetLimits, accept,
};
use tollgate_service::render::RenderConfig;
use tollgate_service::rls::RlsConfig;
use tollgate_service::store::ConfiguredStore;
use tollgate_service::{Sealer, Service, ServiceConfig};
use tollgate_store::MonotonicClock;
use tollgate_web::{Buffered, HttpMetrics, Web};

use crate::caller::Caller;
use crate::corpus::{Cut, each_place, refuses_what_is_too_large, replay};
use crate::rig::{GOOD, RULES, Rig, ms, watch_for_panics};
use crate::slow::{bodies_have_their_time, heads_have_their_time};

impl Rig {
    /// The data API behind hyper.
    pub fn behind_hyper(limits: NetLimits) -> Rig {
        watch_for_panics();
        let clock = Arc::new(MonotonicClock::new());
        let store = ConfiguredStore::in_memory(1 << 20, clock.clone());
        let rules = tollgate_engine::rules_from_yaml(RULES).unwrap();
        let service = Arc::new(Service::new(ServiceConfig {
            engine: Arc::new(Engine::with_clock(store, rules, clock.clone())),
            clock: clock.clone(),
            render: RenderConfig::default(),
            tokens: None,
            sealer: Sealer::new(b"a secret of some length", 1),
            metrics: Arc::default(),
            rls: RlsConfig::default(),
        }));
        let drain = Drain::default();
        let api = DataApi::new(DataApiConfig {
            service,
            limits,
            drain: drain.clone(),
            metrics: Arc::new(HttpMetrics::new(tollgate_http::paths().collect())),
            admin_url: Arc::default(),
            auth: Default::default(),
        });
        let budget = ByteBudget::new(limits.max_in_transit);
        let context = ListenerContext { limits, drain: drain.clone(), clock, budget };
        let listener = Listener::bind(&Address::loopback(0), None).unwrap();
        let Ok(Address::Tcp(data)) = listener.address() else { panic!("a TCP address") };
        let handler = ConnectionHandler::new(Web::new(Buffered::new(api)), Arc::default(), None, context);
        let connections = ConnectionLimiter::new(limits.max_connections, limits.max_connections_per_address);
        let ended = drain.clone();
        tokio::spawn(accept(listener, connections, drain.clone(), handler));
        let served = tokio::spawn(async move {
            ended.begun().await;
            ended.ended(limits.drain_timeout).await
        });
        let rules = tempfile::tempdir().unwrap();
        Rig { data, admin: data, metrics: None, drain, hang_up: Arc::<Notify>::default(), served, _rules: rules }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_corpus_sent_at_once() {
    replay(Rig::behind_hyper, |_| vec![Cut::Whole], "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_corpus_sent_byte_by_byte() {
    replay(Rig::behind_hyper, |_| vec![Cut::Bytes], "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_corpus_sent_behind_a_good_request() {
    replay(Rig::behind_hyper, |_| vec![Cut::Whole], GOOD).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_corpus_cut_at_every_place() {
    replay(Rig::behind_hyper, each_place, "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_messages_are_refused_whole() {
    refuses_what_is_too_large(Rig::behind_hyper(NetLimits::default())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_heads_end_without_a_response() {
    heads_have_their_time(Rig::behind_hyper).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_bodies_are_answered_408() {
    bodies_have_their_time(Rig::behind_hyper).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_are_closed() {
    let rig = Rig::behind_hyper(NetLimits { idle_timeout: ms(300), ..NetLimits::default() });
    let since = Instant::now();
    let (mut silent, mut served) = (Caller::connect(rig.data).await, Caller::connect(rig.data).await);
    assert_eq!(served.ask(GOOD).await.status, 200);
    assert_eq!((silent.rest().await, served.rest().await), (Vec::new(), Vec::new()));
    assert!(since.elapsed() >= ms(300), "{:?}", since.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_requests_are_answered_in_order_and_after_a_half_close() {
    use tokio::io::AsyncWriteExt;
    let rig = Rig::behind_hyper(NetLimits::default());
    for count in [1, 2, 300] {
        let mut caller = Caller::connect(rig.data).await;
        caller.send(GOOD.repeat(count)).await.unwrap();
        caller.stream.shutdown().await.unwrap();
        assert_eq!(caller.rest().await, vec![200; count]);
    }
    let mut caller = Caller::connect(rig.data).await;
    caller.send(format!("{GOOD}POST /v1/check HTT")).await.unwrap();
    caller.stream.shutdown().await.unwrap();
    assert_eq!(caller.rest().await, [200], "half a request is no request");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_reads_is_cut_off() {
    let rig = Rig::behind_hyper(NetLimits { write_timeout: ms(400), ..NetLimits::default() });
    let mut caller = Caller::connect(rig.data).await;
    let since = Instant::now();
    let many = GOOD.repeat(1000);
    let mut sent = 0;
    while caller.send(&many).await.is_ok() {
        sent += many.len();
        assert!(sent < 64 << 20, "the server reads on, though its responses are not read");
    }
    assert!(since.elapsed() >= ms(400), "cut off after {:?}", since.elapsed());
    rig.answers_others().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_answers_what_was_sent_and_closes() {
    const READY: &str = "GET /ready HTTP/1.1\r\nHost: x\r\n\r\n";
    let rig = Rig::behind_hyper(NetLimits::default());
    let mut open = Caller::connect(rig.data).await;
    assert_eq!(open.ask(READY).await.status, 200);
    let mut piped = Caller::connect(rig.data).await;
    assert_eq!(piped.ask(READY).await.status, 200);
    let mut slow = Caller::connect(rig.data).await;
    slow.send("POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n{").await.unwrap();
    slow.until_read().await;
    let mut idle = Caller::connect(rig.data).await;
    rig.drain.begin();
    let answer = open.ask(READY).await;
    assert_eq!((answer.status, answer.closes()), (503, true), "{answer:?}");
    assert!(open.rest().await.is_empty());
    piped.send(format!("{GOOD}{GOOD}{READY}")).await.unwrap();
    assert_eq!(piped.rest().await, [200, 200, 503], "all that was sent at once");
    let answer = slow.ask("\"client_key\":\"payer\"}").await;
    assert_eq!((answer.status, answer.closes()), (200, true), "a request that had begun is answered");
    assert!(idle.rest().await.is_empty(), "a proper end without a response");
    assert!(TcpStream::connect(rig.data).await.is_err());
    drop(slow);
    assert_eq!(rig.served.await.unwrap(), 0);
}
