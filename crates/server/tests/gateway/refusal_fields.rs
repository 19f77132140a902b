//! What callers are told of their limits, field by field and byte by byte: on refusals and on what is allowed. Nothing
//! tells of the gateway's insides, of rules that are tried out, or of limits of others.

use crate::callers::IdentityRig;
use crate::rig::Answer;

/// The clock of these tests stands at the beginning of an hour.
const RULES: &str = "rules:
  - { name: reads, key_by: ip, resource: orders, match: { endpoint: 'GET /api/*' },
      limit: { requests: 2, window: 1h, algorithm: fixed_window } }
  - { name: in-flight, key_by: ip, match: { endpoint: '/api/*' },
      limit: { algorithm: concurrency, slots: 20, slot_ttl: 1m } }
  - { name: secret-trial, mode: shadow, key_by: ip, limit: { requests: 1, window: 1h } }
  - { name: secret-other, key_by: ip, match: { endpoint: '/other' }, limit: { requests: 1, window: 1h } }
";

/// The head without what differs from call to call: the date and the id of the decision, which must be there.
fn fields(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.field("X-Decision-Id").map(str::len), Some(16), "{}", answer.head);
    let is_own = |line: &&str| !line.starts_with("date: ") && !line.starts_with("x-decision-id: ");
    let mut lines: Vec<String> = answer.head.trim_end().split("\r\n").filter(is_own).map(str::to_owned).collect();
    lines[1..].sort_unstable();
    lines
}

/// The wait, which has a share of chance in it; the fields without it.
fn without_wait(mut fields: Vec<String>) -> (u64, Vec<String>) {
    let at = fields.iter().position(|line| line.starts_with("retry-after: ")).expect("a wait");
    (fields.remove(at)["retry-after: ".len()..].parse().unwrap(), fields)
}

/// `options` are of the route.
async fn start(options: &str) -> IdentityRig {
    let identity = "identity: []\ntrusted_proxies: [127.0.0.1]";
    IdentityRig::routed(RULES, identity, options, &[], |_| {}).await
}

const BODY: &str = "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
    \"title\":\"Quota exceeded\",\"status\":STATUS,\"detail\":\"The limit of the rule 'reads' is reached.\",\
    \"violated-policies\":[\"reads\"],\"error\":\"rate_limited\",\
    \"message\":\"Too many requests. Retry after 3600s.\",\"error_code\":\"rate_limited\",\"allowed\":false,\"limit\":2,\
    \"remaining\":0,\"reset_at\":1800003600,\"retry_after\":3600,\"retry_after_ms\":3600000,\"rule\":\"reads\",\
    \"violated_rule\":{\"name\":\"reads\",\"scope\":\"ip\",\"limit\":2,\"window_seconds\":3600}}";

fn limited(line: &str, body: &str) -> Vec<String> {
    let mut fields: Vec<String> = [
        line,
        "cache-control: no-store",
        "content-type: application/problem+json",
        "ratelimit-policy: \"reads\";q=2;w=3600, \"in-flight\";q=20;qu=\"concurrent-requests\"",
        "ratelimit: \"reads\";r=0;t=3600, \"in-flight\";r=20",
        "x-ratelimit-limit: 2",
        "x-ratelimit-remaining: 0",
        "x-ratelimit-reset: 1800003600",
        "x-ratelimit-resource: orders",
    ]
    .map(str::to_owned)
    .to_vec();
    fields.push(format!("content-length: {}", body.len()));
    fields[1..].sort_unstable();
    fields
}

#[tokio::test]
async fn allowed_and_refused_answers_tell_of_the_callers_limits_and_of_nothing_else() {
    let id = start("").await;
    for (left, reset) in [(1, "t=3600"), (0, "t=3600")] {
        let answer = id.rig.get("/api/a").await;
        let expected = [
            "HTTP/1.1 200 OK".to_owned(),
            "content-length: 12".to_owned(),
            "ratelimit-policy: \"reads\";q=2;w=3600, \"in-flight\";q=20;qu=\"concurrent-requests\"".to_owned(),
            format!("ratelimit: \"reads\";r={left};{reset}, \"in-flight\";r=19"),
            "x-ratelimit-limit: 2".to_owned(),
            format!("x-ratelimit-remaining: {left}"),
            "x-ratelimit-reset: 1800003600".to_owned(),
            "x-ratelimit-resource: orders".to_owned(),
        ];
        assert_eq!(fields(&answer), expected);
        assert_eq!(answer.body, "from the app");
    }
    let refused = id.rig.get("/api/a").await;
    let body = BODY.replace("STATUS", "429");
    assert_eq!(refused.body, body);
    let (wait, rest) = without_wait(fields(&refused));
    assert_eq!(rest, limited("HTTP/1.1 429 Too Many Requests", &body));
    assert!((3600..=3960).contains(&wait), "never too short, and up to a tenth longer: {wait}");
    let mut waits: Vec<u64> = Vec::new();
    for _ in 0..40 {
        waits.push(without_wait(fields(&id.rig.get("/api/a").await)).0);
    }
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > 5, "callers that are refused together do not come back together: {waits:?}");
    // HEAD gets the same fields, and no body.
    let mut caller = id.rig.connect().await;
    caller.send("HEAD /api/a HTTP/1.1\r\nHost: a\r\n\r\nGET /free HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let head = caller.head().await;
    let head = Answer { status: 429, head, body: String::new() };
    assert_eq!(without_wait(fields(&head)).1, rest);
    let free = caller.answer().await;
    assert_eq!(free.status, 200, "the connection is as it was");
    assert!(free.field("X-Ratelimit-Limit").is_none() && free.field("Ratelimit-Policy").is_none(), "{}", free.head);
}

/// A route may answer 403: then the document says so too.
#[tokio::test]
async fn a_status_of_the_routes_own_is_the_one_in_the_document() {
    for (status, line) in [("403", "HTTP/1.1 403 Forbidden"), ("503", "HTTP/1.1 503 Service Unavailable")] {
        let id = start(&format!(", denied_status: {status}")).await;
        for _ in 0..2 {
            assert_eq!(id.rig.get("/api/a").await.status, 200);
        }
        let refused = id.rig.get("/api/a").await;
        let body = BODY.replace("STATUS", status);
        assert_eq!(refused.body, body);
        assert_eq!(without_wait(fields(&refused)).1, limited(line, &body));
    }
}

/// No word of generations, modes, stores, rules that are tried out, or of what other callers use.
#[tokio::test]
async fn nothing_internal_is_told_in_any_refusal() {
    let id = start("").await;
    let from = |client: &str| format!("X-Forwarded-For: {client}\r\n");
    for _ in 0..5 {
        id.rig.get_with("/api/a", &from("192.0.2.1")).await;
    }
    id.rig.get_with("/other", &from("192.0.2.1")).await;
    let mut caller = id.rig.connect().await;
    caller.send("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n").await;
    let answers = [
        id.rig.get_with("/api/a", &from("192.0.2.1")).await,
        id.rig.get_with("/other", &from("192.0.2.1")).await,
        id.rig.get_with("/api/a", &format!("{}Accept: application/json\r\n", from("192.0.2.1"))).await,
        id.rig.get_with("/api/a", &from("192.0.2.2")).await,
        id.rig.get("/api%2Fa").await,
        id.rig.get("/garbage").await,
        caller.answer().await,
    ];
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [429, 429, 429, 200, 400, 502, 400]);
    for answer in &answers {
        let text = format!("{}{}", answer.head, answer.body).to_lowercase();
        for internal in
            ["generation", "\"mode\"", "store\"", "trial", "shadow", "192.0.2", "127.0.0.1", "tollgate/", "rules.yaml"]
        {
            assert!(!text.contains(internal), "{internal}: {answer:?}");
        }
    }
    assert!(!format!("{:?}", answers[0]).contains("secret-other"), "a rule that is not about this request");
    assert_eq!(answers[2].field("Content-Type"), Some("application/json"));
    assert_eq!(answers[3].field("X-RateLimit-Remaining"), Some("1"), "of this caller, whatever others used");
}
