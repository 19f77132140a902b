//! What a scrape says, read the way a strict scraper reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tollgate_core::{Attribute, ManualClock, Request, Span, Time};
use tollgate_engine::Engine;
use tollgate_grpc::GrpcMetrics;
use tollgate_net::{ConnectionMetrics, RefusalReason};
use tollgate_resp_server::RespMetrics;
use tollgate_ruleset::RuleSet;
use tollgate_server::rule_sources::{FileStates, RuleSourceState};
use tollgate_service::ServiceObserver;
use tollgate_service::violations::ViolationMetrics;
use tollgate_store::Memory;
use tollgate_telemetry::{
    DecisionMetrics, Exposition, Lines, PanicCounter, ProcessFamilies, Scrape, Sink, StoreFamilies,
};
use tollgate_web::HttpMetrics;

const NOW: Time = Time::from_secs(1_800_000_000);

struct Rig {
    metrics: Arc<DecisionMetrics>,
    connections: Arc<ConnectionMetrics>,
    http: Arc<HttpMetrics>,
    panics: Arc<PanicCounter>,
    engine: Arc<Engine<Memory>>,
    scrape: Scrape,
}

fn rules(yaml: &str) -> RuleSet {
    tollgate_engine::rules_from_yaml(yaml).unwrap_or_else(|report| panic!("{report}"))
}

fn rig(yaml: &str) -> Rig {
    let metrics = Arc::new(DecisionMetrics::default());
    let observer = ServiceObserver::new(metrics.clone(), None);
    let engine = Arc::new(Engine::on_clock(rules(yaml), ManualClock::at(NOW)).with_observer(observer));
    metrics.adopt(&engine.rules());
    let (held, panics) = (engine.clone(), Arc::<PanicCounter>::default());
    let (connections, http) = (Arc::<ConnectionMetrics>::default(), Arc::new(HttpMetrics::new(vec!["/v1/check"])));
    let scrape = Scrape::default();
    scrape.register(metrics.clone());
    scrape.register(ViolationMetrics::default());
    scrape.register(StoreFamilies { memory: Box::new(move || Some(held.store().stats())), shared: Box::new(|| None) });
    scrape.register(connections.clone());
    scrape.register(http.clone());
    scrape.register(GrpcMetrics::default());
    scrape.register(RespMetrics::default());
    let counted = panics.clone();
    scrape.register(ProcessFamilies {
        logs: vec![("server", Lines::start(Sink::Other(Box::new(std::io::sink()))).expect("a thread"))],
        panics: Box::new(move || counted.count()),
        started: NOW,
    });
    Rig { metrics, connections, http, panics, engine, scrape }
}

impl Rig {
    fn decide(&self, request: Request<'_>) -> bool {
        self.engine.decide_now(&request).is_allowed()
    }

    fn samples(&self) -> BTreeMap<String, f64> {
        parse(&self.scrape.text(Exposition::OpenMetrics))
    }
}

/// Reads OpenMetrics text, and panics on whatever is not: families apart and described, samples of their family, labels
/// quoted and escaped, no sample twice, the end marked.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let body = text.strip_suffix("# EOF\n").expect("the end is marked");
    let (mut samples, mut families) = (BTreeMap::new(), BTreeSet::new());
    let (mut family, mut kind) = (String::new(), String::new());
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(!help.is_empty() && families.insert(name.to_owned()), "{name} comes twice or unexplained");
            family = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, type_) = rest.split_once(' ').expect("a type");
            assert_eq!(name, family);
            kind = type_.to_owned();
        } else {
            let (series, value) = sample(line);
            let name = series.split('{').next().unwrap_or_default();
            let suffix = name.strip_prefix(&*family).expect("a sample of its family");
            let allowed: &[&str] = match &*kind {
                "counter" => &["_total"],
                "gauge" => &[""],
                "info" => &["_info"],
                "histogram" => &["_sum", "_count", "_bucket"],
                other => panic!("no such type: {other}"),
            };
            assert!(allowed.contains(&suffix), "{line}");
            assert!(samples.insert(series, value).is_none(), "twice: {line}");
        }
    }
    samples
}

/// `name{label="value",…} 1.5`
fn sample(line: &str) -> (String, f64) {
    let is_name = |text: &str| {
        let mut letters = text.chars();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    assert!(is_name(name), "{line}");
    let mut rest = labels;
    while rest != "}" {
        let (label, after) = rest.split_once("=\"").expect("a quoted value");
        assert!(is_name(label), "{line}");
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next().expect("a closing quote") {
                (_, '\\') => assert!(matches!(letters.next(), Some((_, '\\' | '"' | 'n'))), "{line}"),
                (at, '"') => break at,
                (_, letter) => assert!(letter != '\n'),
            }
        };
        rest = after.get(end + 1..).expect("a closing brace");
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    (series.to_owned(), value.parse().expect("a number"))
}

const SMALL: &str = r#"
rules:
  - { name: posts, match: { tier: [free, 'go"ld\'] }, key_by: user_id, limit: { requests: 1, window: 1h } }
  - { name: trial, mode: shadow, key_by: user_id, limit: { requests: 1, window: 1h } }
"#;

#[test]
fn a_small_scrape_as_a_whole() {
    let rig = rig(SMALL);
    let free = Request::new().with(Attribute::UserId, "42").with(Attribute::Tier, "free");
    assert!(rig.decide(free) && !rig.decide(free));
    assert!(rig.decide(Request::new().with(Attribute::UserId, "43").with(Attribute::Tier, "go\"ld\\")));
    assert!(rig.decide(Request::new().with(Attribute::UserId, "44").with(Attribute::Tier, "invented")));
    assert!(rig.decide(Request::new().in_namespace("invented")));
    assert!(!rig.decide(Request::new().with(Attribute::Ip, "nonsense")));
    assert!(!rig.decide(free.peek()), "asking is not counted");
    rig.metrics.observe_latency(Span::from_nanos(1500));
    rig.connections.opened();
    rig.connections.opened();
    rig.connections.closed();
    rig.connections.refused(RefusalReason::Full);
    rig.http.responded("/v1/check", 200);
    rig.http.responded("/etc/passwd", 418);
    rig.panics.add_one();
    let text = rig.scrape.text(Exposition::OpenMetrics);
    parse(&text);
    let own = |line: &&str| !line.contains("process_") && !line.contains("_bytes") && !line.contains("_bucket{");
    let shown: Vec<&str> = text.lines().filter(own).collect();
    assert_eq!(shown.join("\n"), WHOLE.trim());
    let buckets: Vec<&str> = text.lines().filter(|line| line.contains("_bucket{")).collect();
    assert_eq!((buckets.len(), buckets[0]), (20, "tollgate_decision_seconds_bucket{le=\"0.000001\"} 0"));
    assert_eq!(buckets[1], "tollgate_decision_seconds_bucket{le=\"0.000002\"} 1");
    assert_eq!(buckets[19], "tollgate_decision_seconds_bucket{le=\"+Inf\"} 1");
}

const WHOLE: &str = r##"
# HELP tollgate_requests_allowed Requests allowed, at the rule that decided
# TYPE tollgate_requests_allowed counter
tollgate_requests_allowed_total{namespace="__other__",rule="",tier="",mode="store"} 1
tollgate_requests_allowed_total{namespace="default",rule="",tier="__other__",mode="store"} 1
tollgate_requests_allowed_total{namespace="default",rule="posts",tier="free",mode="store"} 1
tollgate_requests_allowed_total{namespace="default",rule="posts",tier="go\"ld\\",mode="store"} 1
# HELP tollgate_requests_denied Requests denied, at the rule that decided
# TYPE tollgate_requests_denied counter
tollgate_requests_denied_total{namespace="default",rule="posts",tier="free",mode="store"} 1
# HELP tollgate_requests_invalid Requests that could not be read
# TYPE tollgate_requests_invalid counter
tollgate_requests_invalid_total 1
# HELP tollgate_shadow_denied Requests that a shadow rule would have denied
# TYPE tollgate_shadow_denied counter
tollgate_shadow_denied_total{namespace="default",rule="trial",tier="free",mode="store"} 1
# HELP tollgate_decision_seconds Time from a request to its decision
# TYPE tollgate_decision_seconds histogram
tollgate_decision_seconds_sum 0.0000015
tollgate_decision_seconds_count 1
# HELP tollgate_store_failures Times the store did not answer
# TYPE tollgate_store_failures counter
tollgate_store_failures_total 0
# HELP tollgate_extensions Further amounts that streams asked for
# TYPE tollgate_extensions counter
tollgate_extensions_total{outcome="granted"} 0
tollgate_extensions_total{outcome="denied"} 0
# HELP tollgate_fallback_decisions Decisions made by policy, without the store
# TYPE tollgate_fallback_decisions counter
tollgate_fallback_decisions_total{policy="allow"} 0
tollgate_fallback_decisions_total{policy="deny"} 0
tollgate_fallback_decisions_total{policy="local"} 0
# HELP tollgate_generation Generation of the rules in force
# TYPE tollgate_generation gauge
tollgate_generation 1
# HELP tollgate_rules Rules in force
# TYPE tollgate_rules gauge
tollgate_rules 2
# HELP tollgate_violations_written Refusals written down
# TYPE tollgate_violations_written counter
tollgate_violations_written_total 0
# HELP tollgate_violations_dropped Refusals not written down
# TYPE tollgate_violations_dropped counter
tollgate_violations_dropped_total 0
# HELP tollgate_violations_waiting Rows of violations that wait for the database
# TYPE tollgate_violations_waiting gauge
tollgate_violations_waiting 0
# HELP tollgate_keys Buckets in memory
# TYPE tollgate_keys gauge
tollgate_keys 5
# HELP tollgate_keys_dropped Buckets dropped because they equalled unused ones
# TYPE tollgate_keys_dropped counter
tollgate_keys_dropped_total 0
# HELP tollgate_overflow Charges to an overflow bucket for want of memory
# TYPE tollgate_overflow counter
tollgate_overflow_total 0
# HELP tollgate_connections Connections
# TYPE tollgate_connections gauge
tollgate_connections{state="open"} 1
# HELP tollgate_connections_refused Connections refused
# TYPE tollgate_connections_refused counter
tollgate_connections_refused_total{reason="full"} 1
tollgate_connections_refused_total{reason="per_address"} 0
tollgate_connections_refused_total{reason="handshake"} 0
tollgate_connections_refused_total{reason="proxy_header"} 0
# HELP tollgate_http_requests HTTP requests answered
# TYPE tollgate_http_requests counter
tollgate_http_requests_total{path="/v1/check",status="200"} 1
tollgate_http_requests_total{path="__other__",status="418"} 1
# HELP tollgate_grpc_requests Calls by gRPC answered
# TYPE tollgate_grpc_requests counter
# HELP tollgate_resp_commands RESP commands answered
# TYPE tollgate_resp_commands counter
# HELP tollgate_resp_throttled Decisions by limits that came with the command
# TYPE tollgate_resp_throttled counter
tollgate_resp_throttled_total{outcome="allowed"} 0
tollgate_resp_throttled_total{outcome="denied"} 0
# HELP tollgate_resp_throttled_locally Of these, made without the store
# TYPE tollgate_resp_throttled_locally counter
tollgate_resp_throttled_locally_total 0
# HELP tollgate_resp_errors RESP commands that were none, or not allowed
# TYPE tollgate_resp_errors counter
tollgate_resp_errors_total 0
# HELP tollgate_resp_wrong_passwords Wrong passwords over RESP
# TYPE tollgate_resp_wrong_passwords counter
tollgate_resp_wrong_passwords_total 0
# HELP tollgate_resp_protocol_errors RESP connections ended for what was sent
# TYPE tollgate_resp_protocol_errors counter
tollgate_resp_protocol_errors_total{reason="malformed"} 0
tollgate_resp_protocol_errors_total{reason="too_large"} 0
tollgate_resp_protocol_errors_total{reason="foreign"} 0
tollgate_resp_protocol_errors_total{reason="too_slow"} 0
tollgate_resp_protocol_errors_total{reason="stranger"} 0
tollgate_resp_protocol_errors_total{reason="no_room"} 0
# HELP tollgate_log_lines_dropped Log lines lost to a full buffer or a broken sink
# TYPE tollgate_log_lines_dropped counter
tollgate_log_lines_dropped_total{log="server"} 0
# HELP tollgate_panics Panics that were caught
# TYPE tollgate_panics counter
tollgate_panics_total 1
# HELP tollgate_build The version that is running
# TYPE tollgate_build info
tollgate_build_info{version="0.1.0"} 1
# EOF
"##;

/// Of both formats the same samples; families are named as their samples in the older one.
#[test]
fn prometheus_text_has_the_samples_of_openmetrics() {
    let rig = rig(SMALL);
    assert!(rig.decide(Request::new().with(Attribute::UserId, "42").with(Attribute::Tier, "free")));
    let text = rig.scrape.text(Exposition::Text);
    let (mut families, mut family, mut samples) = (BTreeMap::new(), "", BTreeSet::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(!help.is_empty(), "{line}");
            family = name;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert_eq!(name, family);
            assert!(
                ["counter", "gauge", "histogram"].contains(&kind) && families.insert(name, kind).is_none(),
                "{line}"
            );
        } else {
            assert!(!line.starts_with('#'), "{line}");
            let (series, _) = sample(line);
            let name = series.split('{').next().unwrap_or_default();
            assert_eq!(name.ends_with("_total"), families[family] == "counter", "{line}");
            assert!(name == family || families[family] == "histogram", "{line} in {family}");
            assert!(samples.insert(series), "twice: {line}");
        }
    }
    let openmetrics: BTreeSet<String> = rig.samples().into_keys().collect();
    assert_eq!(samples, openmetrics);
    assert_eq!(families["tollgate_build_info"], "gauge");
}

#[test]
fn every_status_that_is_answered_is_told_apart() {
    let rig = rig(SMALL);
    let samples_of = |status: u16| format!("tollgate_http_requests_total{{path=\"/v1/check\",status=\"{status}\"}}");
    (0..=u16::MAX).for_each(|status| rig.http.responded("/v1/check", status));
    let samples = rig.samples();
    for status in 100..600 {
        assert_eq!(samples.get(&samples_of(status)), Some(&1.0), "{status}");
    }
    assert!([0, 99, 600, u16::MAX].iter().all(|status| !samples.contains_key(&samples_of(*status))), "none is one");
}

#[test]
fn the_tier_that_a_client_is_known_to_have_is_counted() {
    let rig = rig("
rules:
  - { name: all, key_by: user_id, limit: { requests: 9, window: 1h } }
clients:
  - { client_key: 'user:42', tier: paid }
");
    assert!(rig.decide(Request::new().with(Attribute::UserId, "42")));
    assert!(rig.decide(Request::new().with(Attribute::UserId, "43")));
    let samples = rig.samples();
    let count = |tier: &str| {
        samples[&*format!(
            "tollgate_requests_allowed_total{{namespace=\"default\",rule=\"all\",tier=\"{tier}\",mode=\"store\"}}"
        )]
    };
    assert_eq!((count("paid"), count("")), (1.0, 1.0));
}

fn many_rules(from: usize, count: usize) -> String {
    let mut yaml = String::from("rules:\n");
    for number in from..from + count {
        yaml += &format!(
            "  - {{ name: r{number}, match: {{ user_id: u{number} }}, key_by: user_id, limit: {{ requests: 1, window: 1h }} }}\n"
        );
    }
    yaml
}

fn sum(samples: &BTreeMap<String, f64>, part: &str) -> f64 {
    samples.iter().filter(|(series, _)| series.contains(part)).map(|(_, value)| value).sum()
}

#[test]
fn p29_series_are_bounded_and_nothing_goes_uncounted() {
    let rig = rig(&many_rules(0, 6000));
    let hit = |from: usize| {
        for number in from..from + 6000 {
            let user = format!("u{number}");
            let request = Request::new().with(Attribute::UserId, &user).with(Attribute::Tier, &user);
            let _ = rig.decide(request) || rig.decide(request);
            let _ = rig.decide(request);
        }
    };
    hit(0);
    let samples = rig.samples();
    assert!(samples.len() <= 10_000, "{} series", samples.len());
    assert_eq!(sum(&samples, "tollgate_requests_"), 12_000.0);
    assert!(sum(&samples, "rule=\"__other__\"") > 0.0);
    assert_eq!(sum(&samples, "tier=\"u1\""), 0.0, "a tier that only callers name");
    rig.engine.swap_rules(rules(&many_rules(6000, 6000)));
    hit(6000);
    let samples = rig.samples();
    assert!(samples.len() <= 10_000, "{} series", samples.len());
    assert!(sum(&samples, "rule=\"r6000\"") > 0.0, "rules that are gone make room");
    assert_eq!(samples["tollgate_generation"], 2.0);
}

#[test]
fn counts_never_go_back_over_generations() {
    let (one, two) =
        (rules(SMALL), "rules:\n  - { name: late, key_by: user_id, limit: { requests: 1, window: 1h } }\n");
    let rig = rig(SMALL);
    let free = Request::new().with(Attribute::UserId, "42").with(Attribute::Tier, "free");
    let _ = (rig.decide(free), rig.decide(free));
    rig.engine.swap_rules(rules(two));
    let _ = rig.decide(free);
    let during = rig.samples();
    rig.engine.swap_rules(one);
    let _ = (rig.decide(free), rig.decide(free));
    let after = rig.samples();
    for (series, before) in during.iter().filter(|(series, _)| series.contains("_total")) {
        assert!(after[series] >= *before, "{series} went back");
    }
    let posts = "namespace=\"default\",rule=\"posts\"";
    assert_eq!((sum(&during, posts), sum(&after, posts)), (2.0, 4.0));
    assert_eq!((sum(&during, "rule=\"late\""), sum(&after, "rule=\"late\"")), (1.0, 1.0));
}

#[test]
fn nothing_is_lost_between_threads_and_generations() {
    let rig = rig(SMALL);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let rig = &rig;
            scope.spawn(move || {
                let user = thread.to_string();
                let request = Request::new().with(Attribute::UserId, &user).with(Attribute::Tier, "free");
                (0..5000).for_each(|_| {
                    rig.decide(request);
                });
            });
        }
        scope.spawn(|| {
            for _ in 0..50 {
                rig.engine.swap_rules(rules(SMALL));
            }
        });
    });
    let samples = rig.samples();
    let counted = sum(&samples, "tollgate_requests_allowed") + sum(&samples, "tollgate_requests_denied");
    assert_eq!(counted, 20_000.0);
    assert_eq!(sum(&samples, "rule=\"posts\""), 20_000.0, "at the rule that decided");
}

#[test]
fn a_scrape_tells_how_the_rules_file_stands() {
    let state =
        RuleSourceState { reloads: 3, failures: 2, panics: 1, loaded_at: Some(NOW), ..RuleSourceState::default() };
    let (_sender, feed) = tokio::sync::watch::channel(state);
    let (files, scrape) = (FileStates(vec![feed]), Scrape::default());
    scrape.register(files.clone());
    let panics = PanicCounter::default();
    panics.add_one();
    scrape.register(ProcessFamilies {
        logs: Vec::new(),
        panics: Box::new(move || panics.count() + files.sum(|state| state.panics)),
        started: NOW,
    });
    let samples = parse(&scrape.text(Exposition::OpenMetrics));
    assert_eq!((samples["tollgate_reloads_total"], samples["tollgate_reload_failures_total"]), (3.0, 2.0));
    assert_eq!(samples["tollgate_last_reload_timestamp_seconds"], 1_800_000_000.0);
    assert_eq!(samples["tollgate_panics_total"], 2.0, "those of the feed included");
    assert_eq!(samples["process_start_time_seconds"], 1_800_000_000.0);
    assert!(samples["process_resident_memory_bytes"] > 1e6 && samples["process_open_fds"] > 0.0);
}
