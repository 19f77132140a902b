//! `tollgate envoy-compat` as a drop-in replacement of envoyproxy/ratelimit: files, variables, ports, names.

use std::time::Duration;

use tollgate_lab::patience;

use crate::rig::{Tollgate, call, envoy, send};

const EDGE: &str = "
domain: edge
descriptors:
  - key: remote_address
    rate_limit: { unit: hour, requests_per_unit: 1000 }
  - key: api_key
    value: gold
    rate_limit: { unit: hour, requests_per_unit: 100, name: gold }
    descriptors:
      - key: endpoint
        rate_limit: { unit: day, requests_per_unit: 2, name: per_path }
";

fn json(tollgate: &Tollgate, body: &str) -> (u16, String) {
    let length = body.len();
    let request = format!(
        "POST /json HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    let answer = send(([127, 0, 0, 1], tollgate.http).into(), &request);
    (answer.status, answer.body)
}

#[test]
fn files_decide_behind_envoy_and_ports_serve_the_same_endpoints() {
    let tollgate = Tollgate::compat(&[("edge.yaml", EDGE)], &[("LIMIT_RESPONSE_HEADERS_ENABLED", "true")]);
    let proxy = envoy(tollgate.grpc, |config| {
        config.replace("enable_x_ratelimit_headers: \"OFF\"", "enable_x_ratelimit_headers: DRAFT_VERSION_03")
    });
    let ask = || call(proxy.address(), "/orders", "x-api-key: gold\r\n");
    for left in ["1", "0"] {
        let answer = ask();
        assert_eq!((answer.status, answer.field("x-ratelimit-remaining")), (200, Some(left)), "{answer:?}");
        assert!(answer.field("x-ratelimit-limit").is_some_and(|limit| limit.contains("w=86400;name=\"per_path\"")));
        assert_eq!(answer.field("ratelimit-remaining"), Some(left), "its own headers, where they are switched on");
    }
    let denied = ask();
    assert_eq!((denied.status, denied.body.as_str()), (429, ""), "{denied:?}");
    assert_eq!(denied.field("x-ratelimit-remaining"), Some("0"));

    let debug = |path: &str| call(([127, 0, 0, 1], tollgate.metrics).into(), path, "").body;
    let stats = debug("/stats");
    let counted = |name: &str, count: u64| {
        let line = format!("ratelimit.service.rate_limit.edge.api_key_gold.endpoint.{name}: {count}\n");
        assert!(stats.contains(&line), "{line} in {stats}");
    };
    counted("total_hits", 3);
    counted("over_limit", 1);
    counted("within_limit", 2);
    let metrics = debug("/metrics");
    let line = "ratelimit_service_rate_limit_over_limit{domain=\"edge\",key1=\"api_key_gold\",key2=\"endpoint\"} 1";
    assert!(metrics.contains(line), "{metrics}");
    assert!(debug("/rlconfig").contains("requests_per_unit=1000"), "{}", debug("/rlconfig"));

    let (status, body) = json(
        &tollgate,
        r#"{"domain":"edge","descriptors":[{"entries":[{"key":"api_key","value":"gold"},{"key":"endpoint","value":"/orders"}]}]}"#,
    );
    assert_eq!(status, 429, "{body}");
    assert!(body.contains("\"overallCode\":\"OVER_LIMIT\"") && body.contains("per_path"), "{body}");
    assert_eq!(call(([127, 0, 0, 1], tollgate.http).into(), "/healthcheck", "").body, "OK");
}

#[test]
fn files_are_reloaded_and_a_broken_one_changes_nothing() {
    let tollgate = Tollgate::compat(&[("edge.yaml", EDGE)], &[]);
    let file = tollgate.directory().join("limits/config/edge.yaml");
    let ask = || json(&tollgate, r#"{"domain":"edge","descriptors":[{"entries":[{"key":"new","value":"x"}]}]}"#).1;
    assert!(!ask().contains("currentLimit"));
    let more = format!("{EDGE}  - key: new\n    rate_limit: {{ unit: minute, requests_per_unit: 5 }}\n");
    std::fs::write(&file, &more).unwrap();
    patience::until("the new rule", Duration::from_secs(20), || ask().contains("\"requestsPerUnit\":5"));
    std::fs::write(&file, "domain: edge\ndescriptors: [{ key: '' }]\n").unwrap();
    let stats = || call(([127, 0, 0, 1], tollgate.metrics).into(), "/stats", "").body;
    let is_refused = || stats().contains("config_load_error: 1\n");
    patience::until("the broken one is refused", Duration::from_secs(20), is_refused);
    assert!(ask().contains("\"requestsPerUnit\":5"), "the last good files stay in force");
    std::fs::write(&file, more.replace("per_unit: 5 }", "per_unit: 6 }")).unwrap();
    patience::until("the next good one", Duration::from_secs(20), || ask().contains("\"requestsPerUnit\":6"));
}
