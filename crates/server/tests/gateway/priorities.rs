//! Row P26: while a less important request is admitted, none that is more important is shed.

use std::sync::Arc;

use crate::app::App;
use crate::rig::{Rig, until};

const NO_RULES: &str = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";
/// More of these at once than the upstream takes, and fewer than may wait.
const CRITICAL_CALLERS: usize = 4;
const BULK_CALLERS: usize = 24;
const REQUESTS: usize = 60;

fn routes(app: &App, queue: &str) -> String {
    format!(
        "priorities: [critical, default, sheddable, test]
upstreams: {{ api: {{ servers: {}, concurrency: 2, queue: {{ max: 6, {queue} }} }} }}
routes:
  - {{ path: /critical/*, upstream: api, priority: critical }}
  - {{ path: /bulk/*, upstream: api, priority: sheddable }}
  - {{ path: /tests/*, upstream: api, priority: test }}
  - {{ path: /*, upstream: api }}
",
        app.url()
    )
}

/// Sends requests one after the other; counts those that were served, and those that were shed.
async fn calls(rig: Arc<Rig>, path: &'static str) -> (usize, usize) {
    let (mut served, mut shed) = (0, 0);
    let mut caller = rig.connect().await;
    for _ in 0..REQUESTS {
        caller.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        match caller.answer().await.status {
            200 => served += 1,
            503 => shed += 1,
            other => panic!("{path}: {other}"),
        }
    }
    (served, shed)
}

/// Critical requests fit into the queue, so each of them has a place: that of a request of a lower class, if all are taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p26_no_critical_request_is_shed_while_others_are_served() {
    // Not CoDel: it sheds what has waited for long, and on a busy machine everything has.
    for queue in ["max_wait: 1m, overload: fifo", "max_wait: 1m, overload: lifo"] {
        let app = App::start().await;
        let rig = Arc::new(Rig::routed(NO_RULES, &routes(&app, queue)));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..CRITICAL_CALLERS {
            tasks.spawn(async_tuple("critical", calls(rig.clone(), "/critical/x")));
        }
        for at in 0..BULK_CALLERS {
            let path = if at % 2 == 0 { "/bulk/x" } else { "/tests/x" };
            tasks.spawn(async_tuple("lower", calls(rig.clone(), path)));
        }
        let (mut critical, mut lower) = ((0, 0), (0, 0));
        while let Some(ended) = crate::rig::within(tasks.join_next()).await {
            let (class, (served, shed)) = ended.unwrap();
            let sum = if class == "critical" { &mut critical } else { &mut lower };
            *sum = (sum.0 + served, sum.1 + shed);
        }
        assert_eq!(critical, (CRITICAL_CALLERS * REQUESTS, 0), "{queue}");
        assert!(lower.0 > 0 && lower.1 > 0, "both happened, {queue}: {lower:?}");
        until(async || {
            rig.metrics()
                .await
                .lines()
                .any(|line| line.starts_with("tollgate_upstream_waiting{") && line.ends_with(" 0"))
        })
        .await;
    }
}

async fn async_tuple<T>(class: &'static str, calls: impl Future<Output = T>) -> (&'static str, T) {
    (class, calls.await)
}

/// What waits goes in the order of its class, whatever its order of arrival, and the lowest goes without.
#[tokio::test]
async fn p26_of_all_that_wait_the_highest_class_is_next() {
    let app = App::start().await;
    let rig = Rig::routed(
        NO_RULES,
        &routes(&app, "max_wait: 1m, overload: fifo").replace("concurrency: 2", "concurrency: 1"),
    );
    let mut holder = rig.connect().await;
    holder.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until(async || !app.seen().is_empty()).await;
    let mut callers = Vec::new();
    // The queue has six places; the last four push the first four out, lowest first.
    for path in [
        "/tests/1",
        "/tests/2",
        "/bulk/1",
        "/bulk/2",
        "/x/1",
        "/x/2",
        "/critical/1",
        "/critical/2",
        "/critical/3",
        "/critical/4",
    ] {
        let mut caller = rig.connect().await;
        caller.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        callers.push((path, caller));
        let come = callers.len();
        until(async || waiting_and_displaced(&rig).await == come).await;
    }
    app.released.send_replace(1);
    assert_eq!(holder.answer().await.status, 200);
    for (path, caller) in &mut callers {
        let is_low = path.starts_with("/tests") || path.starts_with("/bulk");
        assert_eq!(caller.answer().await.status, if is_low { 503 } else { 200 }, "{path}");
    }
    let seen = app.seen();
    let order: Vec<&str> = seen.iter().filter_map(|seen| seen.split(' ').nth(1)).collect();
    assert_eq!(order, ["/critical/1", "/critical/2", "/critical/3", "/critical/4", "/x/1", "/x/2"]);
}

async fn waiting_and_displaced(rig: &Rig) -> usize {
    let metrics = rig.metrics().await;
    let counts = metrics.lines().filter(|line| {
        line.starts_with("tollgate_upstream_waiting{")
            || (line.starts_with("tollgate_gateway_requests_total{") && line.contains("displaced"))
    });
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum()
}
