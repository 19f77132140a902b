//! Domains of envoyproxy/ratelimit's files, answered as that service answers: what its own integration tests check, and
//! its settings.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use serde_json::{Value, json};
use tollgate_config::Config;
use tollgate_net::Address;
use tollgate_server::Surface;
use tollgate_server::run::Server;

use crate::rig::{Answer, call};

const FILES: &str = "\
domain: edge
descriptors:
- { key: minute, rate_limit: { unit: minute, requests_per_unit: 20 } }
- { key: hour, rate_limit: { unit: hour, requests_per_unit: 10 } }
- { key: watched, shadow_mode: true, rate_limit: { unit: hour, requests_per_unit: 1 } }
- { key: free, rate_limit: { unlimited: true } }
- key: service
  value: one
  quota_mode: true
  metadata: { name: service_1, plan: { level: 1, kept: true } }
  rate_limit: { unit: hour, requests_per_unit: 1 }
- key: service
  value: two
  quota_mode: true
  metadata: { name: service_2, plan: { level: 2, more: [a, null] }, region: eu }
  rate_limit: { unit: hour, requests_per_unit: 2 }
- key: tenant
  value: gold
  descriptors:
  - { key: path, value: 'files/*', rate_limit: { unit: second, requests_per_unit: 5 } }
";

struct Domain {
    data: Address,
    debug: Address,
    _dir: tempfile::TempDir,
}

impl Domain {
    fn serve(change: impl FnOnce(&mut Config)) -> Domain {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("edge.yaml"), FILES).unwrap();
        let mut config = Config { metrics: Some(Address::loopback(0)), ..Config::for_test() };
        config.envoy.config = Some(dir.path().to_owned());
        change(&mut config);
        let server = Server::bind(config, None).unwrap();
        let at = |wanted| server.addresses().into_iter().find(|(surface, _)| *surface == wanted).unwrap().1;
        let (data, debug) = (at(Surface::Data), at(Surface::Metrics));
        tokio::spawn(server.run());
        Domain { data, debug, _dir: dir }
    }

    /// Descriptors of one entry each.
    async fn ask(&self, descriptors: &[(&str, &str)]) -> Value {
        self.send(json!({ "domain": "edge", "descriptors": of(descriptors) })).await.json()
    }

    async fn send(&self, body: Value) -> Answer {
        call(&self.data, "POST", "/json", "Content-Type: application/json\r\n", &body.to_string()).await
    }

    async fn explain(&self, body: &Value) -> Answer {
        let fields = "Content-Type: application/json\r\n";
        call(&self.data, "POST", "/v1/explain", fields, &body.to_string()).await
    }

    async fn debug(&self, path: &str) -> String {
        String::from_utf8(call(&self.debug, "GET", path, "", "").await.body).unwrap()
    }

    async fn stat(&self, name: &str) -> Option<u64> {
        let stats = self.debug("/stats").await;
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("ratelimit.service.{name}: ")))?;
        line.parse().ok()
    }
}

fn of(descriptors: &[(&str, &str)]) -> Vec<Value> {
    descriptors.iter().map(|(key, value)| json!({ "entries": [{ "key": key, "value": value }] })).collect()
}

fn left(answer: &Value) -> Vec<u64> {
    answer["statuses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["limitRemaining"].as_u64().unwrap_or_default())
        .collect()
}

/// Its basic test: a limit by itself, then two together, and what is counted meanwhile.
#[tokio::test]
async fn limits_are_counted_one_by_one_and_stopped_by_option() {
    for stops in [false, true] {
        let domain = Domain::serve(|config| config.envoy.stop_counting = stops);
        for number in 1..=25 {
            let answer = domain.ask(&[("minute", "a")]).await;
            let (code, remaining) = if number > 20 { ("OVER_LIMIT", 0) } else { ("OK", 20 - number) };
            assert_eq!((answer["overallCode"].as_str(), left(&answer)), (Some(code), vec![remaining]), "{number}");
            assert_eq!(domain.stat("rate_limit.edge.minute.total_hits").await, Some(number));
            assert_eq!(domain.stat("rate_limit.edge.minute.over_limit").await, Some(number.saturating_sub(20)));
        }
        for number in 1..=15_u64 {
            let answer = domain.ask(&[("minute", "b"), ("hour", "b")]).await;
            // Once the second is over its limit, the first is counted no more, by option.
            let first = if stops && number > 10 { 10 } else { 20 - number };
            assert_eq!(left(&answer), [first, 10_u64.saturating_sub(number)], "{number}, {stops}");
            assert_eq!(answer["statuses"][0]["code"], "OK");
            assert_eq!(answer["overallCode"], if number > 10 { "OVER_LIMIT" } else { "OK" });
            assert_eq!(domain.stat("rate_limit.edge.minute.total_hits").await, Some(25 + number));
            assert_eq!(domain.stat("rate_limit.edge.minute.over_limit").await, Some(5));
            assert_eq!(domain.stat("rate_limit.edge.hour.over_limit").await, Some(number.saturating_sub(10)));
        }
    }
}

/// Several descriptors, some over, some not, some in shadow: what is over is counted, whatever the option.
#[tokio::test]
async fn what_stops_is_what_is_not_over() {
    let domain = Domain::serve(|config| config.envoy.stop_counting = true);
    let all = [("hour", "x"), ("watched", "x"), ("minute", "x")];
    assert_eq!(left(&domain.ask(&all).await), [9, 0, 19]);
    for _ in 0..3 {
        let answer = domain.ask(&all).await;
        assert_eq!(left(&answer), [9, 0, 19], "a limit in shadow stops the others too, as there");
        assert_eq!(answer["overallCode"], "OK");
    }
    let shadow = domain.stat("rate_limit.edge.watched.shadow_mode").await;
    assert_eq!((shadow, domain.stat("rate_limit.edge.watched.over_limit").await), (Some(3), Some(3)));
}

#[tokio::test]
async fn metadata_tells_the_request_and_what_passes() {
    let silent = Domain::serve(|_| {});
    assert_eq!(silent.ask(&[("service", "one")]).await.get("dynamicMetadata"), None, "nobody asked for it");
    let domain = Domain::serve(|config| config.envoy.dynamic_metadata = true);
    let both = [("service", "one"), ("service", "two")];
    let request = json!({ "domain": "edge", "descriptors": [
        { "entries": ["service=one"] }, { "entries": ["service=two"] },
    ]});
    let told = |metadata: Option<Value>| {
        let mut told = request.clone();
        if let Some(metadata) = metadata {
            told["metadata"] = metadata;
        }
        told
    };
    let first =
        json!({ "name": "service_1", "plan": { "level": 1.0, "kept": true, "more": ["a", null] }, "region": "eu" });
    assert_eq!(domain.ask(&both).await["dynamicMetadata"], told(Some(first)), "the first that passes wins");
    let second = json!({ "name": "service_2", "plan": { "level": 2.0, "more": ["a", null] }, "region": "eu" });
    let answer = domain.ask(&both).await;
    assert_eq!((&answer["dynamicMetadata"], &answer["overallCode"]), (&told(Some(second)), &json!("OK")));
    let answer = domain.ask(&both).await;
    assert_eq!((&answer["dynamicMetadata"], &answer["overallCode"]), (&told(None), &json!("OVER_LIMIT")));

    let body = json!({ "domain": "edge", "hitsAddend": 2, "descriptors": [
        { "entries": [{ "key": "a", "value": "b" }, { "key": "c" }], "hitsAddend": 3 },
        { "entries": [{ "key": "a", "value": "d" }], "limit": { "requestsPerUnit": 42, "unit": "HOUR" } },
    ]});
    let answer = domain.send(body).await.json();
    assert_eq!(
        answer["dynamicMetadata"],
        json!({ "domain": "edge", "hitsAddend": 2.0, "descriptors": [
            { "entries": ["a=b", "c="], "hitsAddend": 3.0 },
            { "entries": ["a=d"], "limit": "requests_per_unit:42 unit:HOUR" },
        ]})
    );
}

#[tokio::test]
async fn headers_are_about_the_last_that_refuses() {
    let names = ["X-Limit", "X-Left", "X-Reset"].map(str::to_owned).to_vec();
    let domain = Domain::serve(|config| config.envoy.headers = names);
    let limit = |answer: &Value| answer["responseHeadersToAdd"][0]["value"].as_str().map(str::to_owned);
    let all = [("minute", "h"), ("hour", "h")];
    assert_eq!(limit(&domain.ask(&all).await).as_deref(), Some("10"), "the least is left of the second");
    let many = json!({ "domain": "edge", "hitsAddend": 30, "descriptors": of(&all) });
    assert_eq!(limit(&domain.send(many.clone()).await.json()).as_deref(), Some("10"), "the last of two that refuse");
    let turned = json!({ "domain": "edge", "hitsAddend": 30, "descriptors": of(&[all[1], all[0]]) });
    assert_eq!(limit(&domain.send(turned).await.json()).as_deref(), Some("20"));
    let quota = [("minute", "h"), ("service", "one"), ("service", "two"), ("service", "two"), ("service", "two")];
    let answer = domain.ask(&quota).await;
    assert_eq!(limit(&answer).as_deref(), Some("20"), "a quota refuses nothing by itself: {answer}");
    assert_eq!(limit(&domain.ask(&[("free", "h"), ("nowhere", "h")]).await), None);
}

#[tokio::test]
async fn rules_and_counts_are_printed_as_there() {
    let domain = Domain::serve(|config| config.envoy.shadow = true);
    let printed = domain.debug("/rlconfig").await;
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "edge.free: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false",
            "edge.hour: unit=HOUR requests_per_unit=10, shadow_mode: false, quota_mode: false",
            "edge.minute: unit=MINUTE requests_per_unit=20, shadow_mode: false, quota_mode: false",
            "edge.service_one: unit=HOUR requests_per_unit=1, shadow_mode: false, quota_mode: true",
            "edge.service_two: unit=HOUR requests_per_unit=2, shadow_mode: false, quota_mode: true",
            "edge.tenant_gold.path_files/*: unit=SECOND requests_per_unit=5, shadow_mode: false, quota_mode: false",
            "edge.watched: unit=HOUR requests_per_unit=1, shadow_mode: true, quota_mode: false",
        ]
    );
    assert_eq!(domain.stat("config_load_success").await, Some(1));
    assert_eq!(domain.stat("config_load_error").await, Some(0));
    assert_eq!(domain.send(json!({ "domain": "", "descriptors": of(&[("hour", "p")]) })).await.status, 400);
    assert_eq!(domain.stat("call.should_rate_limit.service_error").await, Some(1));
    for _ in 0..12 {
        assert_eq!(domain.ask(&[("hour", "p")]).await["overallCode"], "OK");
    }
    assert_eq!(domain.stat("global_shadow_mode").await, Some(2));
}

/// A change, a mistake and the removal of a file, each counted once.
#[tokio::test]
async fn loads_are_counted() {
    let domain = Domain::serve(|config| config.reload_interval = std::time::Duration::from_millis(20));
    let more = domain._dir.path().join("more.yaml");
    let until = async |name: &str, wanted: u64| {
        let waiting = async { while domain.stat(name).await < Some(wanted) {} };
        tokio::time::timeout(std::time::Duration::from_secs(30), waiting).await.expect("it is counted");
    };
    std::fs::write(
        &more,
        "domain: reload\ndescriptors: [{ key: key1, rate_limit: { unit: second, requests_per_unit: 50 } }]\n",
    )
    .unwrap();
    until("config_load_success", 2).await;
    let body = json!({ "domain": "reload", "descriptors": of(&[("key1", "foo")]) });
    assert_eq!(left(&domain.send(body).await.json()), [49]);
    std::fs::write(&more, "domain: reload\ndescriptors: [{ key: '' }]\n").unwrap();
    until("config_load_error", 1).await;
    std::fs::remove_file(&more).unwrap();
    until("config_load_success", 3).await;
}

/// `path` is an entry like any other: its rule is found, explained, and nothing is charged.
#[tokio::test]
async fn descriptors_with_a_path_are_explained() {
    let domain = Domain::serve(|_| {});
    let entries = json!([{ "key": "tenant", "value": "gold" }, { "key": "path", "value": "files/a" }]);
    let message = json!({ "domain": "edge", "descriptors": [{ "entries": entries }] });
    for _ in 0..2 {
        let answer = domain.explain(&message).await.json();
        let rules = answer["rules"].as_array().unwrap();
        let applies: Vec<&Value> = rules.iter().filter(|rule| rule["applies"] == true).collect();
        assert_eq!((applies.len(), &applies[0]["remaining_before"]), (1, &json!(5)), "{answer}");
        assert_eq!(answer["decision"]["allowed"], true, "{answer}");
    }
    let two = json!({ "domain": "edge", "descriptors": of(&[("hour", "a"), ("hour", "b")]) });
    let refused = domain.explain(&two).await;
    assert_eq!((refused.status, &refused.json()["code"]), (400, &json!("one_descriptor")), "{}", refused.json());
}

/// `LOCAL_CACHE_SIZE_IN_BYTES`: the first refusal comes from the store, further ones from this node; they are not counted
/// in the bucket, and `/stats` tells them apart.
#[tokio::test]
async fn what_is_over_its_limit_is_refused_by_the_local_cache() {
    // A quota of another namespace depends on the clock, and changes nothing here.
    let rules = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&rules, "rules: [{ name: monthly, key_by: user_id, quota: { amount: 9, every: month } }]\n")
        .unwrap();
    let domain = Domain::serve(|config| {
        config.rules = Some(rules.path().to_owned());
        config.envoy.local_cache = 1000;
    });
    for number in 1..=14_u64 {
        let answer = domain.ask(&[("hour", "a")]).await;
        assert_eq!(left(&answer), [10_u64.saturating_sub(number)], "{number}: {answer}");
        let over = if number > 10 { "OVER_LIMIT" } else { "OK" };
        assert_eq!((&answer["overallCode"], &answer["statuses"][0]["code"]), (&json!(over), &json!(over)));
        assert!(answer["statuses"][0]["durationUntilReset"].is_string(), "{answer}");
    }
    let stat = async |name: &str| domain.stat(&format!("rate_limit.edge.hour.{name}")).await;
    assert_eq!((stat("total_hits").await, stat("over_limit").await), (Some(14), Some(4)));
    assert_eq!(stat("over_limit_with_local_cache").await, Some(3));
    let stats = domain.debug("/stats").await;
    for line in ["ratelimit.localcache.hitCount: 3\n", "ratelimit.localcache.missCount: 11\n"] {
        assert!(stats.contains(line), "{stats}");
    }
    // Another descriptor of the call is counted; one in shadow mode passes, from the cache too.
    let both = domain.ask(&[("hour", "a"), ("minute", "a")]).await;
    assert_eq!((left(&both), &both["overallCode"]), (vec![0, 19], &json!("OVER_LIMIT")), "{both}");
    for _ in 0..3 {
        let watched = domain.ask(&[("watched", "a"), ("unknown", "a")]).await;
        assert_eq!(
            (&watched["overallCode"], &watched["statuses"][1]["code"]),
            (&json!("OK"), &json!("OK")),
            "{watched}"
        );
    }
    assert_eq!(domain.stat("rate_limit.edge.watched.over_limit_with_local_cache").await, Some(1));
    assert_eq!(domain.stat("rate_limit.edge.watched.shadow_mode").await, Some(2));
}
