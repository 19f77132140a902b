//! Webhooks of a fleet: each event is sent once, signed, and tried again until it arrives.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tollgate_config::{Config, DbPlace};
use tollgate_control::DatabaseUrl;
use tollgate_lab::patience::eventually;
use tollgate_lab::redis::RedisServer;

use crate::node::{PATIENCE, store};
use crate::rig::{Answer, Rig, call};

const RULES: &str = "
key_by: client_key
rules:
  - { name: daily, on_fail: deny, quota: { amount: 10, every: day, marks: [50%] } }
  - name: guarded
    match: { tier: guarded }
    limit: { requests: 1, window: 1d, algorithm: fixed_window }
    penalty: { after: 3, within: 1h, block: 2h }
";

/// Keeps what is sent to it, and answers with these statuses, then with 204.
struct Receiver {
    url: String,
    taken: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Receiver {
    async fn start(statuses: &[u16]) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook/s3cr3t-path", listener.local_addr().expect("an address"));
        let taken = Arc::<Mutex<Vec<(String, Value)>>>::default();
        let (kept, mut statuses) = (taken.clone(), VecDeque::from(statuses.to_vec()));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = Vec::new();
                let mut part = [0; 4096];
                let (head, body) = loop {
                    let count = stream.read(&mut part).await.expect("bytes");
                    assert!(count > 0, "the caller left");
                    bytes.extend(&part[..count]);
                    let text = String::from_utf8(bytes.clone()).expect("text");
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let length = field(head, "content-length").parse::<usize>().expect("a length");
                    if body.len() == length {
                        break (head.to_owned(), body.to_owned());
                    }
                };
                let status = statuses.pop_front().unwrap_or(204);
                let reply = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                let body = serde_json::from_str(&body).expect("JSON");
                kept.lock().push((head, body));
                stream.write_all(reply.as_bytes()).await.expect("a caller");
            }
        });
        Receiver { url, taken }
    }

    fn of(&self, event: &str) -> Vec<(String, Value)> {
        self.taken.lock().iter().filter(|(_, body)| body["event"] == event).cloned().collect()
    }
}

fn field<'a>(head: &'a str, name: &str) -> &'a str {
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    fields.find(|(own, _)| own.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
}

/// A node with this database.
async fn node(redis: &RedisServer, database: &Path, change: impl FnOnce(&mut Config)) -> Rig {
    let url = redis.url();
    Rig::open(RULES, |config, dir| {
        config.store = store(&url);
        config.control.db = DbPlace::At(DatabaseUrl::Sqlite(database.to_owned()));
        config.control.state_dir = Some(dir);
        config.signals.webhooks = true;
        config.signals.webhook_private_networks = true;
        change(config);
    })
    .await
}

struct Operator {
    token: String,
}

impl Operator {
    /// With the first token, which lies beside the database.
    fn of(files: &Path) -> Operator {
        let token = std::fs::read_to_string(files.join("admin-token")).expect("the first token");
        Operator { token: token.trim().to_owned() }
    }

    async fn call(&self, rig: &Rig, method: &str, path: &str, body: Value) -> Answer {
        let fields = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", self.token);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        call(&rig.admin, method, path, &fields, &body).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_sent_once_by_a_fleet_and_signed() {
    let (redis, files) = (RedisServer::start(), tempfile::tempdir().expect("a directory"));
    let database = files.path().join("tollgate.db");
    let (here, there) = (node(&redis, &database, |_| {}).await, node(&redis, &database, |_| {}).await);
    let (receiver, operator) = (Receiver::start(&[]).await, Operator::of(files.path()));
    let made = operator.call(&here, "POST", "/v1/webhooks", json!({ "url": receiver.url, "name": "test" })).await;
    assert_eq!(made.status, 201, "{}", made.head);
    let (made, secret) = (made.json(), made.json()["secret"].as_str().expect("a secret").to_owned());
    let id = made["webhook_id"].as_str().expect("an id").to_owned();

    let tested = operator.call(&there, "POST", &format!("/v1/webhooks/{id}/test"), Value::Null).await.json();
    assert_eq!((&tested["state"], &tested["status"]), (&json!("delivered"), &json!(204)), "{tested}");

    // A node tells of events once it knows of the webhook, and of a mark once: each request is another client's first, and
    // reaches the mark.
    let clients = AtomicU64::new(0);
    let sent = eventually("the mark of a client arrives", PATIENCE, async || {
        let number = clients.fetch_add(1, Ordering::Relaxed);
        let request = format!(r#"{{"client_key":"user:42-{number}","cost":5}}"#);
        let rig = if number.is_multiple_of(2) { &here } else { &there };
        rig.check(&request).await;
        Some(receiver.of("quota_mark")).filter(|sent| !sent.is_empty())
    })
    .await;
    let (head, body) = &sent[0];
    assert_eq!((&body["rule"], &body["data"]["percent"]), (&json!("daily"), &json!(50)));
    let client = body["client"].as_str().expect("a client");
    assert!(client.starts_with("user:#") && !body.to_string().contains("user:42"), "a digest: {client}");
    let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("its form")).expect("base64");
    let (id_sent, seconds) = (field(head, "webhook-id"), field(head, "webhook-timestamp"));
    assert_eq!(id_sent, body["id"]);
    let signed = format!("{id_sent}.{seconds}.{body}");
    let expected = STANDARD.encode(sign(&Key::new(HMAC_SHA256, &key), signed.as_bytes()));
    assert_eq!(field(head, "webhook-signature"), format!("v1,{expected}"));

    let path = format!("/v1/webhooks/{id}/deliveries");
    let listed = operator.call(&there, "GET", &path, Value::Null).await.json();
    let events: Vec<&str> =
        listed["deliveries"].as_array().expect("a list").iter().filter_map(|one| one["event"].as_str()).collect();
    assert!(events.ends_with(&["quota_mark", "test"]), "{events:?}");
    let marks = receiver.of("quota_mark");
    let clients: BTreeSet<&str> = marks.iter().filter_map(|(_, body)| body["client"].as_str()).collect();
    assert_eq!(marks.len(), clients.len(), "once, though two nodes could send it: {marks:?}");

    let exports = ["/v1/audit", "/v1/webhooks", &path];
    for export in exports {
        let text = String::from_utf8(operator.call(&here, "GET", export, Value::Null).await.body).expect("text");
        assert!(!text.contains(&secret), "{export} has the secret");
        assert!(export != "/v1/audit" || !text.contains("s3cr3t-path"), "{text}");
    }
    let gone = operator.call(&here, "DELETE", &format!("/v1/webhooks/{id}"), Value::Null).await;
    assert_eq!(gone.status, 204);
    assert_eq!(operator.call(&there, "GET", &path, Value::Null).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_penalty_is_told_once_by_a_fleet() {
    let (redis, files) = (RedisServer::start(), tempfile::tempdir().expect("a directory"));
    let database = files.path().join("tollgate.db");
    let nodes = [node(&redis, &database, |_| {}).await, node(&redis, &database, |_| {}).await];
    let (receiver, operator) = (Receiver::start(&[]).await, Operator::of(files.path()));
    let body = json!({ "url": receiver.url, "events": ["penalty_begun"] });
    let made = operator.call(&nodes[0], "POST", "/v1/webhooks", body).await;
    assert_eq!(made.status, 201, "{}", made.head);
    // A node tells of penalties once it knows of the webhook: each turn is another client's.
    let clients = AtomicU64::new(0);
    let sent = eventually("a penalty is told", PATIENCE, async || {
        let number = clients.fetch_add(1, Ordering::Relaxed);
        let request = format!(r#"{{"client_key":"user:42-{number}","tier":"guarded"}}"#);
        for turn in 0..6 {
            nodes[turn % 2].check(&request).await;
        }
        Some(receiver.of("penalty_begun")).filter(|sent| !sent.is_empty())
    })
    .await;
    let (_, body) = &sent[0];
    assert_eq!((&body["rule"], &body["data"]["number"]), (&json!("guarded"), &json!(1)), "{body}");
    assert!(body["data"]["ends_at"].as_str() > body["data"]["begun_at"].as_str(), "{body}");
    assert!(body["client"].as_str().is_some_and(|client| client.starts_with("user:#")), "{body}");
    assert!(!body.to_string().contains("user:42"), "{body}");
    let clients: BTreeSet<&str> = sent.iter().filter_map(|(_, body)| body["client"].as_str()).collect();
    assert_eq!(sent.len(), clients.len(), "once, though both nodes refused: {sent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_fails_is_tried_again_and_redirects_are_not_followed() {
    let (redis, files) = (RedisServer::start(), tempfile::tempdir().expect("a directory"));
    let rig = node(&redis, &files.path().join("tollgate.db"), |_| {}).await;
    let (receiver, operator) = (Receiver::start(&[302, 500]).await, Operator::of(files.path()));
    let body = json!({ "url": receiver.url, "events": ["quota_mark"] });
    let made = operator.call(&rig, "POST", "/v1/webhooks", body).await.json();
    let path = format!("/v1/webhooks/{}/test", made["webhook_id"].as_str().expect("an id"));
    for (status, error) in [(302, json!("redirects are not followed")), (500, Value::Null)] {
        let tested = operator.call(&rig, "POST", &path, Value::Null).await.json();
        assert_eq!((&tested["state"], &tested["status"]), (&json!("waiting"), &json!(status)), "{tested}");
        assert_eq!(tested["error"], error);
        assert!(tested["next_at"].is_string());
    }
    assert_eq!(receiver.of("test").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn s13_urls_inside_are_refused_and_off_is_off() {
    let (redis, files) = (RedisServer::start(), tempfile::tempdir().expect("a directory"));
    let database = files.path().join("tollgate.db");
    let public = |config: &mut Config| config.signals.webhook_private_networks = false;
    let rig = node(&redis, &database, public).await;
    let off = node(&redis, &database, |config: &mut Config| config.signals.webhooks = false).await;
    let operator = Operator::of(files.path());
    for url in [
        "http://169.254.169.254/",
        "https://169.254.169.254/",
        "http://127.1",
        "https://127.1/",
        "https://[::ffff:127.0.0.1]/",
        "http://0x7f000001",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://0.0.0.0/",
        "file:///etc/passwd",
        "gopher://x/",
        "http://a@b",
        "https://a@b/",
        "https://10.0.0.1/",
        "https://[::1]/",
        "http://example.com/",
    ] {
        let answer = operator.call(&rig, "POST", "/v1/webhooks", json!({ "url": url })).await;
        assert_eq!(answer.status, 422, "{url}: {}", answer.head);
    }
    // A name is judged when it is called.
    let made = operator.call(&rig, "POST", "/v1/webhooks", json!({ "url": "https://localhost/x" })).await;
    assert_eq!(made.status, 201);
    let path = format!("/v1/webhooks/{}/test", made.json()["webhook_id"].as_str().expect("an id"));
    let tested = operator.call(&rig, "POST", &path, Value::Null).await.json();
    let error = tested["error"].as_str().expect("an error");
    assert!(error.contains("which is no public address"), "{error}");
    for (method, path, body) in
        [("POST", "/v1/webhooks", json!({ "url": "https://example.com/" })), ("POST", path.as_str(), Value::Null)]
    {
        let answer = operator.call(&off, method, path, body).await;
        assert_eq!((answer.status, &answer.json()["code"]), (409, &json!("webhooks_off")), "{}", answer.head);
    }
}
