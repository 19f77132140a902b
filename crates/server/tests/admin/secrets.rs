//! Tokens, secrets and client keys do not appear in logs, in errors, or in responses to viewers.

use std::io;
use std::sync::{Arc, LazyLock, OnceLock};

use parking_lot::Mutex;
use serde_json::json;
use tollgate_admin::{AdminEndpoint, FileKind, FileRule, HttpMethod, NodeStatus, QuarantinedRow, endpoints};
use tollgate_control::{Instant, Violation};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

use crate::rig::{JSON, Rig};

/// Everything that this process logs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

fn log() -> &'static Log {
    static LOG: LazyLock<Log> = LazyLock::new(Log::default);
    static SET: OnceLock<()> = OnceLock::new();
    SET.get_or_init(|| {
        let ours = Targets::new().with_target("tollgate", LevelFilter::TRACE).with_target("sqlx", LevelFilter::TRACE);
        let subscriber =
            tracing_subscriber::registry().with(ours).with(tracing_subscriber::fmt::layer().with_writer(LOG.clone()));
        tracing::subscriber::set_global_default(subscriber).expect("the only subscriber");
    });
    &LOG
}

const KEY: &str = "CANARYKEY7391";
const SECRET: &str = "CANARYSECRET5527";

async fn filled() -> Rig {
    let rig = Rig::start().await;
    let client_key = format!("key:{KEY}");
    let until = rig.in_seconds(3600);
    let rule = json!({ "rule_id": "for-one", "match": { "client_key": client_key, "api_key": KEY }, "limit": { "requests": 1, "window": "1s" }, "cost": [{ "match": { "client_key": client_key }, "cost": 1 }] });
    rig.send("POST", "/v1/rules", rule).await.expect(201);
    rig.send("POST", "/v1/clients", json!({ "client_key": client_key, "tier": "free" })).await.expect(201);
    let change = json!({ "override_id": "o", "client_key": client_key, "rule_id": "for-one", "max_requests": 2, "valid_until": until });
    rig.send("POST", "/v1/overrides", change).await.expect(201);
    let violation = Violation {
        namespace: "default".to_owned(),
        client_key: client_key.clone(),
        endpoint: "/a".to_owned(),
        rule_id: Some("for-one".to_owned()),
        is_shadow: false,
        minute: Instant(1_700_000_040_000_000),
        last: Instant(1_700_000_040_000_000),
        refused: 1,
        request_count: 2,
        limit_value: 1,
    };
    rig.control.as_ref().unwrap().record_violations(&[violation]).await.unwrap();
    let document = json!({ "match": { "client_key": [client_key, "*"] }, "limit": { "requests": 1, "window": "1s" } });
    *rig.world.files.lock() = Arc::new(vec![FileRule {
        namespace: "default".to_owned(),
        rule_id: "filed".to_owned(),
        kind: FileKind::Rules,
        location: "rules.yaml:3".to_owned(),
        document: document.as_object().unwrap().clone(),
    }]);
    let row = QuarantinedRow {
        kind: "client".to_owned(),
        namespace: "default".to_owned(),
        id: client_key.clone(),
        reason: format!("{client_key} is odd"),
    };
    *rig.world.status.lock() = NodeStatus { quarantined: vec![row], ..NodeStatus::default() };
    rig
}

#[tokio::test(flavor = "multi_thread")]
async fn p30_viewers_see_digests_wherever_keys_stand() {
    let rig = filled().await;
    let mut shown = 0;
    // A stream does not end; the tests of traffic read it.
    let is_read = |endpoint: &&AdminEndpoint| endpoint.method == HttpMethod::Get && endpoint.id != "streamEvents";
    for endpoint in endpoints().iter().filter(is_read) {
        let fill = |part: &'static str| match part {
            "{rule_id}" => "for-one".to_owned(),
            "{override_id}" => "o".to_owned(),
            "{client_key}" => format!("key:{KEY}"),
            part => part.to_owned(),
        };
        let path = endpoint.path.split('/').map(fill).collect::<Vec<String>>().join("/");
        let queries: &[&str] = match endpoint.path {
            "/v1/generations/diff" => &["?from=0&to=6"],
            "/v1/violations/top" => &["", "?by=rule", "?by=endpoint"],
            "/v1/clients" => &["", "?limit=1", "?prefix=key:CANARY"],
            _ => &[""],
        };
        for query in queries {
            let answer = rig.call_as(&rig.viewer, "GET", &format!("{path}{query}"), "", "").await;
            assert!(!answer.text().contains(KEY) && !answer.head.contains(KEY), "{path}{query}: {}", answer.text());
            shown += usize::from(answer.text().contains("key:#"));
        }
    }
    assert!(shown >= 9, "keys are shown as digests in many places, and here in {shown}");
    let refused = rig.call_as(&rig.viewer, "GET", "/v1/clients?prefix=key:CANARY", "", "").await;
    assert_eq!(refused.expect(403).code(), "role_too_weak", "or beginnings would tell whole keys one by one");
    let filed = rig.call_as(&rig.viewer, "GET", "/v1/rules/filed", "", "").await.expect(200);
    assert!(filed.text().contains("key:#") && !filed.text().contains(KEY), "{}", filed.text());
    let own = rig.get("/v1/clients").await.expect(200).text();
    assert!(own.contains(KEY), "operators see them: {own}");
    let one = rig.call_as(&rig.viewer, "GET", &format!("/v1/clients/key:{KEY}"), "", "").await.expect(200).json();
    let other = rig.call_as(&rig.viewer, "GET", "/v1/violations", "", "").await.expect(200).json();
    assert_eq!(one["client_key"], other["violations"][0]["client_key"], "the same digest everywhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn p30_no_log_line_and_no_error_tells_a_token_a_secret_or_a_key() {
    let log = log();
    let rig = filled().await;
    let bad = format!("tg_someid_{SECRET}");
    let mut errors = Vec::new();
    errors.push(rig.call_as(&bad, "GET", "/v1/rules", "", "").await.expect(401));
    errors.push(rig.raw("GET", &format!("/v1/rules?token={bad}"), "", b"").await.expect(401));
    let secret = format!("{{\"name\":\"x\",\"role\":\"viewer\",\"secret\":\"{SECRET}\"}}");
    errors.push(rig.call_as(&rig.admin, "POST", "/v1/tokens", JSON, &secret).await.expect(400));
    errors
        .push(rig.call_as(&rig.admin, "POST", "/v1/tokens", JSON, &format!("{{\"name\": {SECRET}")).await.expect(400));
    let made =
        rig.call_as(&rig.admin, "POST", "/v1/tokens", JSON, "{\"name\":\"y\",\"role\":\"viewer\"}").await.expect(201);
    let whole = made.json()["token"].as_str().unwrap().to_owned();
    for path in ["/v1/tokens", "/v1/audit", "/v1/generations"] {
        errors.push(rig.call_as(&rig.admin, "GET", path, "", "").await.expect(200));
    }
    rig.call_as(&rig.admin, "PUT", "/v1/mode", JSON, "{\"mode\":\"shadow\"}").await.expect(200);
    rig.get(&format!("/v1/clients/key:{KEY}-none")).await.expect(404);
    for answer in &errors {
        for told in [SECRET, whole.as_str(), &rig.admin, &rig.operator] {
            let secret = told.rsplit('_').next().unwrap();
            assert!(!answer.text().contains(secret), "{}", answer.text());
        }
    }
    let lines = String::from_utf8_lossy(&log.0.lock()).into_owned();
    assert_eq!(lines.matches("unknown token presented").count(), 1, "new ones were found in the database: {lines}");
    assert!(lines.contains("the mode was set"), "{lines}");
    for told in [SECRET, KEY, &whole, &rig.admin, &rig.operator, &rig.viewer] {
        let secret = told.rsplit('_').next().unwrap();
        assert!(!lines.contains(secret), "a log line holds {secret}: {lines}");
    }
}
