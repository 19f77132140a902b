//! The steps of CONTRIBUTING's "A transport", done for a protocol of one line: `CHECK user:42` is answered with `ALLOW 1`
//! or `DENY`. If this file needs more than `net`, `service` and a metric of its own, those steps are incomplete.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tollgate_core::{ManualClock, Time};
use tollgate_engine::{Decision, Engine};
use tollgate_net::{
    Address, ByteBudget, ConnectionHandler, ConnectionLimiter, Drain, Listener, ListenerContext, NetLimits, Peer,
    Protocol, Stream, accept,
};
use tollgate_service::render::RenderConfig;
use tollgate_service::rls::RlsConfig;
use tollgate_service::store::ConfiguredStore;
use tollgate_service::{CheckRequest, Sealer, Service, ServiceConfig};
use tollgate_telemetry::{Counter, DecisionMetrics, Exposition, MetricFamilies, MetricsPage, Scrape};

/// The transport.
struct ToyTransport {
    service: Arc<Service>,
    metrics: Arc<ToyMetrics>,
}

/// Its own metric.
#[derive(Default)]
struct ToyMetrics(Counter);

impl MetricFamilies for ToyMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        page.counter("tollgate_toy_requests", "Lines answered", self.0.sum())
    }
}

impl Protocol for ToyTransport {
    async fn serve(&self, stream: Stream, _: &Peer, context: &ListenerContext) {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        while let Ok(Ok(1..)) = timeout(context.limits.idle_timeout, stream.read_line(&mut line)).await {
            let answer = self.answer(line.trim_end()).await;
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
            line.clear();
        }
    }

    fn too_many_connections(&self) -> &'static [u8] {
        b"BUSY\n"
    }
}

impl ToyTransport {
    async fn answer(&self, line: &str) -> String {
        self.metrics.0.add_one();
        let Some(client) = line.strip_prefix("CHECK ") else { return "ERROR unknown command\n".to_owned() };
        match CheckRequest::named("", [("client_key", client)].into_iter(), None, false) {
            Ok(request) => render(&self.service.decide(&request).await),
            Err(error) => format!("ERROR {}\n", error.code),
        }
    }
}

fn render(decision: &Decision) -> String {
    let left = decision.deciding().and_then(|ruling| ruling.outcome).map_or(0, |outcome| outcome.remaining);
    if decision.is_allowed() { format!("ALLOW {left}\n") } else { "DENY\n".to_owned() }
}

#[tokio::test]
async fn a_transport_is_a_protocol_over_the_service() {
    let clock = Arc::new(ManualClock::at(Time::from_secs(1_800_000_000)));
    let rules = "rules:\n  - { key_by: client_key, limit: { requests: 2, window: 1h } }\n";
    let rules = tollgate_engine::rules_from_yaml(rules).unwrap();
    let metrics = Arc::<DecisionMetrics>::default();
    let store = ConfiguredStore::in_memory(1 << 20, clock.clone());
    let service = Arc::new(Service::new(ServiceConfig {
        engine: Arc::new(Engine::with_clock(store, rules, clock.clone())),
        clock: clock.clone(),
        render: RenderConfig::default(),
        tokens: None,
        sealer: Sealer::new(b"a secret of some length", 1),
        metrics,
        rls: RlsConfig::default(),
    }));
    let (toy_metrics, scrape) = (Arc::<ToyMetrics>::default(), Scrape::default());
    scrape.register(toy_metrics.clone());

    let (limits, drain) = (NetLimits::default(), Drain::default());
    let context = ListenerContext { limits, drain: drain.clone(), clock, budget: ByteBudget::new(1 << 20) };
    let listener = Listener::bind(&Address::loopback(0), None).unwrap();
    let Ok(Address::Tcp(address)) = listener.address() else { panic!("a TCP address") };
    let handler = ConnectionHandler::new(ToyTransport { service, metrics: toy_metrics }, Arc::default(), None, context);
    tokio::spawn(accept(listener, ConnectionLimiter::new(9, 9), drain.clone(), handler));

    let mut client = BufReader::new(TcpStream::connect(address).await.unwrap());
    for (line, expected) in [
        ("CHECK user:1", "ALLOW 1\n"),
        ("CHECK user:1", "ALLOW 0\n"),
        ("CHECK user:1", "DENY\n"),
        ("CHECK user:2", "ALLOW 1\n"),
        ("NONSENSE", "ERROR unknown command\n"),
    ] {
        client.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(Duration::from_secs(30), client.read_line(&mut answer)).await.unwrap().unwrap();
        assert_eq!(answer, expected, "{line}");
    }
    assert!(scrape.text(Exposition::Text).contains("tollgate_toy_requests_total 5\n"));
    drop(client);
    drain.begin();
    assert_eq!(drain.ended(Duration::from_secs(30)).await, 0, "the connection has ended");
}
