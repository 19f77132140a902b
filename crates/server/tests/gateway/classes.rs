//! Classes of requests: by route, by identity, by header; the fleet's reserved share, and traces.

use crate::app::App;
use crate::rig::{Caller, Rig, until};

/// One request at a time for all, and one more that is for critical requests.
const SHEDDER: &str = "key_by: global
rules: [{ name: fleet, limit: { algorithm: concurrency, slots: 2, slot_ttl: 1m, reserved: 50% } }]\n";

fn routes(app: &App, priority: &str) -> String {
    format!(
        "identity: [{{ api_key: {{ header: x-api-key, file: keys.yaml }} }}]
upstreams: {{ api: {{ servers: {} }} }}
routes:
  - {{ path: /pay/*, upstream: api, priority: critical }}
  - {{ path: /*, upstream: api, priority: {priority} }}
",
        app.url()
    )
}

/// The digests of `paid-key` and `free-key`.
const KEYS: &str = "keys:
  - { id: paid, sha256: 23f541ed79d6e0357ea3108e8a985a73296c8979b78f5eafe8b722ff8add1204, client_key: a, tier: paid }
  - { id: free, sha256: 0c7e232ca6aa55ab05a0287b1c4198c7b4275500bce25c40b5a6aa7d564d3c45, client_key: b, tier: free, attributes: { priority: critical } }
";

fn start(app: &App, priority: &str) -> Rig {
    Rig::with(SHEDDER, |config, dir| {
        std::fs::write(dir.join("keys.yaml"), KEYS).unwrap();
        let path = dir.join("routes.yaml");
        std::fs::write(&path, routes(app, priority)).unwrap();
        config.gateway.routes = Some(path);
    })
}

/// A request that holds the slot that is for all.
async fn occupy(rig: &Rig, app: &App) -> Caller {
    let mut caller = rig.connect().await;
    caller.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until(async || !app.seen().is_empty()).await;
    caller
}

#[tokio::test]
async fn the_reserved_share_is_for_critical_requests_and_the_rest_is_shed_with_503() {
    let app = App::start().await;
    let rig = start(&app, "default");
    let mut first = occupy(&rig, &app).await;
    let shed = rig.get("/x").await;
    assert_eq!((shed.status, app.seen().len()), (503, 0), "never 429: no limit of the caller is reached");
    assert!(shed.body.contains("\"error\":\"overload\""), "{}", shed.body);
    let wait: u64 = shed.field("Retry-After").unwrap().parse().unwrap();
    assert!((30..=45).contains(&wait), "{wait}");
    for internal in ["fleet", "limit\":", "remaining", "RateLimit"] {
        assert!(!shed.body.contains(internal) && !shed.head.contains(internal), "{internal}: {shed:?}");
    }
    let critical = rig.get("/pay/x").await;
    assert_eq!(critical.status, 200);
    assert!(!critical.head.contains("fleet"), "the fleet's slots are no business of callers: {}", critical.head);
    app.released.send_replace(1);
    assert_eq!(first.answer().await.status, 200);
    until(async || rig.get("/x").await.status == 200).await;
}

#[tokio::test]
async fn a_class_is_found_by_what_is_proven_and_by_header() {
    let app = App::start().await;
    let priority = "[{ class: critical, match: { tier: [paid, enterprise] } },
      { class: critical, headers: { x-ops: yes-please } }, sheddable]";
    let rig = start(&app, priority);
    let _first = occupy(&rig, &app).await;
    assert_eq!(rig.get("/x").await.status, 503);
    assert_eq!(rig.get_with("/x", "X-Api-Key: paid-key\r\n").await.status, 200);
    assert_eq!(rig.get_with("/x", "X-Api-Key: wrong-key\r\n").await.status, 503, "not proven");
    let free = rig.get_with("/x", "X-Api-Key: free-key\r\n").await;
    assert_eq!(free.status, 503, "the attribute of a key does not name the class");
    assert_eq!(rig.get_with("/x", "X-Ops: no\r\n").await.status, 503);
    assert_eq!(rig.get_with("/x", "X-Ops: yes-please\r\n").await.status, 200);
    assert_eq!(rig.get_with("/x", "Priority: critical\r\n").await.status, 503);
}

#[tokio::test]
async fn a_trace_is_begun_passed_on_or_removed() {
    let app = App::start().await;
    let routes = format!(
        "upstreams: {{ api: {{ servers: {} }} }}
routes:
  - {{ path: /new/*, upstream: api, traceparent: create }}
  - {{ path: /none/*, upstream: api, traceparent: remove }}
  - {{ upstream: api }}
",
        app.url()
    );
    let rig = Rig::routed(SHEDDER, &routes);
    let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    let fields = format!("Traceparent: {given}\r\nTracestate: a=b\r\n");
    let sent = async |path: &str, fields: &str| {
        assert_eq!(rig.get_with(path, fields).await.status, 200);
        let head = app.seen().remove(0).to_lowercase();
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
        (field("traceparent: "), field("tracestate: "))
    };
    let kept = (Some(given.to_owned()), Some("a=b".to_owned()));
    assert_eq!(sent("/x", &fields).await, kept);
    assert_eq!(sent("/new/x", &fields).await, kept);
    assert_eq!(sent("/none/x", &fields).await, (None, None));
    assert_eq!(sent("/x", "").await, (None, None));
    let (begun, state) = sent("/new/x", "Traceparent: nonsense\r\nTracestate: a=b\r\n").await;
    assert!(begun.is_some_and(|begun| begun.len() == given.len() && begun.ends_with("-01")));
    assert_eq!(state, None, "it belonged to another trace");
}
