//! What callers are told, whole.

use tollgate_core::{Attribute, Request, Span};
use tollgate_engine::{Decision, Engine, random_slot};
use tollgate_ruleset::RuleSet;
use tollgate_service::render::{DenialStatus, Detail, Dialect, Media, RenderConfig, ResponseOptions};

use crate::{Unreachable, by_status, engine, object, rendered, rules, text, told, user};

const PER_USER: &str = "rules: [{ name: per_user, resource: search, key_by: user_id, doc_url: 'https://example.com/limits', limit: { requests: 2, window: 1m } }]";

#[test]
fn a_permission() {
    let (engine, _) = engine(PER_USER);
    assert_eq!(
        told(&engine.decide_now(&user("1"))),
        r#"200
Content-Type: application/json
Cache-Control: no-store
X-RateLimit-Limit: 2
X-RateLimit-Remaining: 1
X-RateLimit-Reset: 1700000030
X-RateLimit-Resource: search
RateLimit-Policy: "per_user";q=2;w=60
RateLimit: "per_user";r=1;t=30

{"allowed":true,"limit":2,"remaining":1,"reset_at":1700000030,"retry_after":null,"retry_after_ms":null,"rule":"per_user","mode":"store","generation":1}"#
    );
}

#[test]
fn a_refusal() {
    let (engine, clock) = engine(PER_USER);
    let _ = engine.decide_now(&user("1").cost(2));
    clock.advance(Span::from_nanos(1_500_000_001));
    let denied = engine.decide_now(&user("1"));
    assert_eq!(
        told(&denied),
        r#"200
Content-Type: application/json
Cache-Control: no-store
Retry-After: 29
X-RateLimit-Limit: 2
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 1700000060
X-RateLimit-Resource: search
RateLimit-Policy: "per_user";q=2;w=60
RateLimit: "per_user";r=0;t=29

{"allowed":false,"limit":2,"remaining":0,"reset_at":1700000060,"retry_after":29,"retry_after_ms":28500,"rule":"per_user","mode":"store","generation":1,"violated_rule":{"name":"per_user","scope":"user_id","limit":2,"window_seconds":60}}"#
    );
    let config = RenderConfig { headers: "none".parse().unwrap(), ..RenderConfig::default() };
    assert_eq!(
        text(&rendered(&denied, &by_status(), &config)),
        r#"429
Content-Type: application/problem+json
Cache-Control: no-store
Retry-After: 29

{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,"detail":"The limit of the rule 'per_user' is reached.","violated-policies":["per_user"],"error":"rate_limited","message":"Too many requests. Retry after 29s.","error_code":"rate_limited","doc_url":"https://example.com/limits","allowed":false,"limit":2,"remaining":0,"reset_at":1700000060,"retry_after":29,"retry_after_ms":28500,"rule":"per_user","violated_rule":{"name":"per_user","scope":"user_id","limit":2,"window_seconds":60}}"#
    );
}

#[test]
fn a_refusal_that_no_waiting_helps() {
    let (engine, _) = engine(PER_USER);
    let never = engine.decide_now(&user("1").cost(3));
    assert_eq!(
        object(&never),
        r#"{"allowed":false,"limit":2,"remaining":2,"reset_at":1700000000,"retry_after":null,"retry_after_ms":null,"never":true,"rule":"per_user","mode":"store","generation":1,"violated_rule":{"name":"per_user","scope":"user_id","limit":2,"window_seconds":60}}"#
    );
    let config = RenderConfig { headers: "draft-11".parse().unwrap(), never_status: 413, ..RenderConfig::default() };
    assert_eq!(
        text(&rendered(&never, &ResponseOptions { media: Media::Json, ..by_status() }, &config)),
        r#"413
Content-Type: application/json
Cache-Control: no-store
RateLimit-Policy: "per_user";q=2;w=60
RateLimit: "per_user";r=2

{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":413,"detail":"The request costs more than the rule 'per_user' ever allows at once.","violated-policies":["per_user"],"error":"rate_limited","message":"This request can never pass: its cost exceeds the limit.","error_code":"cost_too_high","doc_url":"https://example.com/limits","allowed":false,"limit":2,"remaining":2,"reset_at":1700000000,"retry_after":null,"retry_after_ms":null,"never":true,"rule":"per_user","violated_rule":{"name":"per_user","scope":"user_id","limit":2,"window_seconds":60}}"#
    );
}

#[tokio::test]
async fn a_rules_own_code_stands_for_its_limit_alone() {
    let yaml = "rules: [{ name: own, key_by: user_id, on_fail: deny, error_code: search.too_many, limit: { requests: 2, window: 1m } }]";
    let (engine, _) = engine(yaml);
    let code = |decision: Decision| {
        let reply = rendered(&decision, &by_status(), &RenderConfig::default());
        let problem: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        (problem["error"].clone(), problem["error_code"].clone())
    };
    let pair = |code: &str| (serde_json::Value::from("rate_limited"), code.into());
    assert_eq!(code(engine.decide_now(&user("1").cost(3))), pair("cost_too_high"));
    let _ = engine.decide_now(&user("1").cost(2));
    assert_eq!(code(engine.decide_now(&user("1"))), pair("search.too_many"));
    let away = Engine::new(Unreachable, rules(yaml)).decide(&user("1")).await;
    assert_eq!(code(away), ("store_unavailable".into(), "store_unavailable".into()));
}

#[test]
fn the_status_of_a_refusal_is_the_calls_choice_or_the_settings() {
    let (engine, _) = engine(PER_USER);
    let refuse = RenderConfig { denial_status: DenialStatus::TooManyRequests, ..RenderConfig::default() };
    let allowed = engine.decide_now(&user("1").cost(2));
    let denied = engine.decide_now(&user("1"));
    let plain = RenderConfig::default();
    let status = |decision, asking, config| rendered(decision, &asking, config).status;
    assert_eq!(status(&denied, ResponseOptions::default(), &plain), 200);
    assert_eq!(status(&denied, ResponseOptions::default(), &refuse), 429);
    assert_eq!(status(&denied, by_status(), &plain), 429);
    assert_eq!(status(&allowed, by_status(), &refuse), 200);
    let by_body = ResponseOptions { deny_by_status: Some(false), ..ResponseOptions::default() };
    assert_eq!(status(&denied, by_body, &refuse), 200, "the call has the last word");
}

#[test]
fn the_alias_says_zero_where_there_is_nothing_to_wait_for() {
    let (engine, _) = engine(PER_USER);
    let alias = ResponseOptions { dialect: Dialect::Alias, ..ResponseOptions::default() };
    let waits = |cost| {
        let reply = rendered(&engine.decide_now(&user("1").cost(cost)), &alias, &RenderConfig::default());
        let answer: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        (answer["retry_after"].clone(), answer["retry_after_ms"].clone())
    };
    assert_eq!(waits(2), (0.into(), 0.into()));
    assert_eq!(waits(1), (30.into(), 30_000.into()));
    assert_eq!(waits(3), (().into(), ().into()));
}

#[test]
fn several_rules() {
    let (engine, _) = engine(
        "rules:
  - { name: second, key_by: global, limit: { requests: 5, window: 250ms, algorithm: fixed_window } }
  - { name: minute, key_by: 'user_id:endpoint', limit: { requests: 3, window: 1m, burst: 1 } }
  - { name: trial, key_by: 'user_id|ip', mode: shadow, limit: { requests: 1, window: 1h, algorithm: sliding_window_log } }
  - { name: staff, match: { tier: staff }, unlimited: true, replaces: [trial] }
",
    );
    let request = user("1").with(Attribute::Endpoint, "GET /a");
    let _ = engine.decide_now(&request);
    assert_eq!(
        told(&engine.decide_now(&request)),
        r#"200
Content-Type: application/json
Cache-Control: no-store
Retry-After: 20
X-RateLimit-Limit: 1
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 1700000020
X-RateLimit-Resource: minute
RateLimit-Policy: "second";q=20;w=1;tollgate-burst=5, "minute";q=3;w=60;tollgate-burst=1
RateLimit: "second";r=4;t=1, "minute";r=0;t=20

{"allowed":false,"limit":1,"remaining":0,"reset_at":1700000020,"retry_after":20,"retry_after_ms":20000,"rule":"minute","mode":"store","generation":1,"violated_rule":{"name":"minute","scope":"user_id:endpoint","limit":1,"window_seconds":60},"rules":[{"rule":"second","allowed":true,"limit":5,"remaining":4},{"rule":"minute","allowed":false,"limit":1,"remaining":0,"retry_after_ms":20000},{"rule":"trial","allowed":false,"limit":1,"remaining":0,"retry_after_ms":3600000,"shadow":true}]}"#
    );
    assert_eq!(
        object(&engine.decide_now(&user("1").cost(6).with(Attribute::Tier, "staff"))),
        r#"{"allowed":false,"limit":5,"remaining":4,"reset_at":1700000001,"retry_after":null,"retry_after_ms":null,"never":true,"rule":"second","mode":"store","generation":1,"violated_rule":{"name":"second","scope":"global","limit":5,"window_seconds":0.25},"rules":[{"rule":"second","allowed":false,"limit":5,"remaining":4,"never":true},{"rule":"staff","allowed":true,"limit":null,"remaining":null}]}"#
    );
}

#[test]
fn windows_are_told_in_seconds() {
    let scope_and_window = |key: &str, window: &str| {
        let (engine, _) = engine(&format!("rules: [{{ key_by: {key}, limit: {{ requests: 1, window: {window} }} }}]"));
        let denied = object(&engine.decide_now(&user("1").with(Attribute::Ip, "192.0.2.1").cost(2)));
        let answer: serde_json::Value = serde_json::from_str(&denied).unwrap();
        let rule = &answer["violated_rule"];
        (rule["scope"].as_str().unwrap().to_owned(), rule["window_seconds"].to_string())
    };
    let pair = |scope: &str, window: &str| (scope.to_owned(), window.to_owned());
    assert_eq!(scope_and_window("global", "1h"), pair("global", "3600"));
    assert_eq!(scope_and_window("'user_id:ip'", "1500ms"), pair("user_id:ip", "1.5"));
    assert_eq!(scope_and_window("'user_id|ip'", "20ms"), pair("user_id|ip", "0.02"));
    assert_eq!(scope_and_window("ip", "1001ms"), pair("ip", "1.001"));
    assert_eq!(scope_and_window("ip", "1ms"), pair("ip", "0.001"));
}

#[test]
fn a_queue_says_how_long_to_hold_the_request() {
    let (engine, _) = engine(
        "rules: [{ name: line, key_by: user_id, limit: { algorithm: leaky_bucket, requests: 3, window: 1s, max_delay: 1s } }]",
    );
    let _ = engine.decide_now(&user("1"));
    assert_eq!(
        object(&engine.decide_now(&user("1"))),
        r#"{"allowed":true,"limit":4,"remaining":2,"reset_at":1700000001,"retry_after":null,"retry_after_ms":null,"rule":"line","mode":"store","generation":1,"delay_ms":334}"#
    );
    let queued = rendered(&engine.decide_now(&user("2")), &ResponseOptions::default(), &RenderConfig::default());
    assert_eq!(queued.fields.get("ratelimit-policy").unwrap(), b"\"line\";q=3;w=1;tollgate-burst=4");
}

#[test]
fn slots_have_no_window() {
    let (engine, _) =
        engine("rules: [{ name: inflight, key_by: user_id, limit: { algorithm: concurrency, slots: 1 } }]");
    let _ = engine.decide_now(&user("1").holding(random_slot()));
    assert_eq!(
        told(&engine.decide_now(&user("1").holding(random_slot()))),
        r#"200
Content-Type: application/json
Cache-Control: no-store
Retry-After: 10
X-RateLimit-Limit: 1
X-RateLimit-Remaining: 0
X-RateLimit-Reset: 1700000010
X-RateLimit-Resource: inflight
RateLimit-Policy: "inflight";q=1;qu="concurrent-requests"
RateLimit: "inflight";r=0

{"allowed":false,"limit":1,"remaining":0,"reset_at":1700000010,"retry_after":10,"retry_after_ms":10000,"rule":"inflight","mode":"store","generation":1,"violated_rule":{"name":"inflight","scope":"user_id","limit":1,"window_seconds":null}}"#
    );
}

#[test]
fn no_rule() {
    let bare = "200\nContent-Type: application/json\nCache-Control: no-store\n\n";
    let nothing = r#"{"allowed":true,"limit":null,"remaining":null,"reset_at":null,"retry_after":null,"retry_after_ms":null,"rule":null,"mode":"store","generation":1,"reason":"#;
    let said = |reason: &str| format!("{bare}{nothing}\"{reason}\"}}");
    let empty = Engine::in_memory(RuleSet::empty());
    assert_eq!(told(&empty.decide_now(&user("1"))), said("there are no rules: everything is allowed"));
    let (engine, _) = engine(
        "rules:
  - { match: { tier: free }, unlimited: true }
  - { match: { tier: trial }, mode: shadow, key_by: global, limit: { requests: 1, window: 1s } }
",
    );
    let of_tier = |tier| told(&engine.decide_now(&Request::new().with(Attribute::Tier, tier)));
    assert_eq!(of_tier("paid"), said("no rule applies to this request"));
    assert_eq!(of_tier("free"), said("the rules that apply set no limit for this request"));
    assert_eq!(of_tier("trial"), said("only shadow rules apply to this request"));
}

#[tokio::test]
async fn failing_open_nobody_counts() {
    let yaml = "on_fail: allow\nrules: [{ key_by: user_id, limit: { requests: 1, window: 1h } }]";
    let decision = Engine::new(Unreachable, rules(yaml)).decide(&user("1")).await;
    assert_eq!(
        told(&decision),
        r#"200
Content-Type: application/json
Cache-Control: no-store

{"allowed":true,"limit":null,"remaining":-1,"reset_at":null,"retry_after":null,"retry_after_ms":null,"rule":null,"mode":"open","generation":1,"reason":"the store does not answer: allowed by policy"}"#
    );
}

#[tokio::test]
async fn failing_closed_is_our_fault_and_no_limit_of_the_caller() {
    let yaml = "rules:
  - { name: shut, on_fail: deny, key_by: user_id, limit: { requests: 7, window: 1h } }
  - { name: open, on_fail: allow, key_by: user_id, limit: { requests: 1, window: 1h } }
";
    let decision = Engine::new(Unreachable, rules(yaml)).decide(&user("1")).await;
    assert_eq!(
        text(&rendered(&decision, &by_status(), &RenderConfig::default())),
        r#"503
Content-Type: application/problem+json
Cache-Control: no-store
Retry-After: 1

{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Service unavailable","status":503,"detail":"Limits cannot be checked at the moment, and requests are refused meanwhile.","violated-policies":[],"error":"store_unavailable","message":"Limits cannot be checked at the moment. Retry after 1s.","error_code":"store_unavailable","allowed":false,"retry_after":1,"retry_after_ms":1000}"#
    );
    let reset_at = decision.wall.after(Span::SECOND).secs_ceil();
    assert_eq!(
        told(&decision),
        r#"200
Content-Type: application/json
Cache-Control: no-store
Retry-After: 1

{"allowed":false,"limit":7,"remaining":0,"reset_at":RESET,"retry_after":1,"retry_after_ms":1000,"rule":"shut","mode":"closed","generation":1,"violated_rule":{"name":"shut","scope":"user_id","limit":7,"window_seconds":3600},"rules":[{"rule":"shut","allowed":false,"limit":7,"remaining":0},{"rule":"open","allowed":true,"limit":null,"remaining":-1}],"error_code":"store_unavailable"}"#
            .replace("RESET", &reset_at.to_string())
    );
    let apart: std::collections::BTreeSet<Vec<u8>> = (0..64_u64)
        .map(|number| {
            let asking = ResponseOptions { random: number << 58, ..by_status() };
            let reply = rendered(&decision, &asking, &RenderConfig::default());
            reply.fields.get("Retry-After").unwrap().to_vec()
        })
        .collect();
    assert_eq!(apart.into_iter().collect::<Vec<_>>(), [b"1", b"2", b"3"], "callers come back apart");
}

/// Proxies pass a denial on to clients, which must not learn of other rules.
#[test]
fn a_refusal_by_status_tells_callers_what_concerns_them_and_operators_everything() {
    let (engine, _) = engine(
        "rules:
  - { name: own, key_by: user_id, limit: { requests: 1, window: 1m } }
  - { name: secret-trial, key_by: user_id, mode: shadow, limit: { requests: 1, window: 1h } }
",
    );
    let _ = engine.decide_now(&user("1"));
    let denied = engine.decide_now(&user("1"));
    let body = |denial_detail| {
        let config = RenderConfig { denial_detail, ..RenderConfig::default() };
        String::from_utf8(rendered(&denied, &by_status(), &config).body).unwrap()
    };
    let (public, full) = (body(Detail::Public), body(Detail::Full));
    for told in ["secret-trial", "\"mode\"", "\"generation\"", "shadow"] {
        assert!(!public.contains(told), "{public}");
        assert!(full.contains(told), "{full}");
    }
    for told in ["\"limit\":1", "\"retry_after\":60", "\"rule\":\"own\""] {
        assert!(public.contains(told), "{public}");
    }
}

#[test]
fn an_override_changes_the_numbers() {
    let (engine, _) = engine(
        "rules:
  - { name: bucket, match: { tier: a }, key_by: user_id, limit: { requests: 10, window: 1m, burst: 20 } }
  - { name: window, match: { tier: b }, key_by: user_id, limit: { requests: 10, window: 1m, algorithm: fixed_window } }
overrides:
  - { client_key: 'user:vip', rule: bucket, requests: 100, burst: 200 }
  - { client_key: 'user:vip', rule: window, requests: 1000 }
  - { client_key: 'user:fast', rule: bucket, requests: 100 }
  - { client_key: 'user:wide', rule: bucket, burst: 200 }
",
    );
    let policy = |user_id, tier| {
        let decision = engine.decide_now(&user(user_id).with(Attribute::Tier, tier));
        let reply = rendered(&decision, &ResponseOptions::default(), &RenderConfig::default());
        let field = |name| String::from_utf8(reply.fields.get(name).unwrap().to_vec()).unwrap();
        (field("RateLimit-Policy"), field("X-RateLimit-Limit"))
    };
    let pair = |policy: &str, limit: &str| (policy.to_owned(), limit.to_owned());
    assert_eq!(policy("1", "a"), pair("\"bucket\";q=10;w=60;tollgate-burst=20", "20"));
    assert_eq!(policy("vip", "a"), pair("\"bucket\";q=100;w=60;tollgate-burst=200", "200"));
    assert_eq!(policy("fast", "a"), pair("\"bucket\";q=100;w=60;tollgate-burst=20", "20"));
    assert_eq!(policy("wide", "a"), pair("\"bucket\";q=10;w=60;tollgate-burst=200", "200"));
    assert_eq!(policy("1", "b"), pair("\"window\";q=10;w=60", "10"));
    assert_eq!(policy("vip", "b"), pair("\"window\";q=1000;w=60", "1000"));
}
