//! Configurations of the peers: forward everything to one upstream, with one limit that no run reaches, and one path of
//! which a caller may have two requests in a long time.

use std::net::SocketAddr;
use std::path::Path;

/// Where a proxy listens, and where it forwards to.
#[derive(Clone, Copy, Debug)]
pub struct ProxyAddresses<'a> {
    pub listen: SocketAddr,
    pub upstream: &'a str,
}

/// Three rules for the path of all runs; one more for the path of refusals.
pub const RULES: &str = "\
rules:
  - { name: callers, key_by: ip, limit: { requests: 1000000, window: 1s, burst: 1000000 } }
  - { name: orders, match: { endpoint: \"GET /api/*\" }, key_by: ip, limit: { requests: 100000000, window: 60s, algorithm: sliding_window } }
  - { name: all-callers, key_by: global, limit: { requests: 1000000000, window: 1s, algorithm: fixed_window } }
  - { name: exports, match: { endpoint: \"GET /api/refused\" }, key_by: ip, limit: { requests: 2, window: 1d } }
";

/// nginx: `limit_req` in front of `proxy_pass` with keep-alive.
pub fn nginx(at: ProxyAddresses<'_>, folder: &Path) -> String {
    let ProxyAddresses { listen, upstream } = at;
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|what| {
        format!("  {what}_temp_path {};\n", folder.join(what).display()) // the default belongs to root
    });
    format!(
        "daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log crit;
events {{ worker_connections 20000; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 300s;
{paths}  limit_req_zone $binary_remote_addr zone=callers:10m rate=1000000r/s;
  limit_req_zone $binary_remote_addr zone=refused:10m rate=1r/m;
  limit_req_status 429;
  upstream api {{ server {upstream}; keepalive 128; keepalive_requests 1000000000; }}
  proxy_http_version 1.1;
  proxy_set_header Connection \"\";
  proxy_set_header Host $http_host;
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
  client_max_body_size 0; proxy_request_buffering off; proxy_max_temp_file_size 0;
  server {{
    listen {listen} backlog=4096;
    location / {{ limit_req zone=callers burst=1000000 nodelay; proxy_pass http://api; }}
    location /api/refused {{ limit_req zone=refused burst=1 nodelay; proxy_pass http://api; }}
  }}
}}
",
        folder = folder.display(),
        paths = paths.concat(),
    )
}

/// HAProxy: a stick table of request rates.
pub fn haproxy(at: ProxyAddresses<'_>) -> String {
    let ProxyAddresses { listen, upstream } = at;
    format!(
        "global
  nbthread 1
  maxconn 10100
  no strict-limits
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  option forwardfor
  http-reuse always
frontend callers
  bind {listen}
  stick-table type ip size 100k expire 10s store http_req_rate(10s)
  http-request track-sc0 src
  http-request track-sc1 src table refused if {{ path /api/refused }}
  http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt 100000000 }}
  http-request deny deny_status 429 if {{ sc1_http_req_rate(refused) gt 2 }}
  default_backend api
backend refused
  stick-table type ip size 100k expire 1d store http_req_rate(1d)
backend api
  server api {upstream}
"
    )
}

/// Envoy: its local rate limit filter, configured by route.
pub fn envoy(at: ProxyAddresses<'_>) -> String {
    let ProxyAddresses { listen, upstream } = at;
    let (host, port) = upstream.split_once(':').unwrap_or((upstream, "80"));
    let limit = |name: &str, tokens: u32, interval: &str| {
        format!(
            "typed_per_filter_config:
                  envoy.filters.http.local_ratelimit:
                    \"@type\": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
                    stat_prefix: {name}
                    token_bucket: {{ max_tokens: {tokens}, tokens_per_fill: {tokens}, fill_interval: {interval} }}
                    filter_enabled: {{ default_value: {{ numerator: 100, denominator: HUNDRED }} }}
                    filter_enforced: {{ default_value: {{ numerator: 100, denominator: HUNDRED }} }}"
        )
    };
    format!(
        "static_resources:
  listeners:
  - name: callers
    address: {{ socket_address: {{ address: {ip}, port_value: {listen_port} }} }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: callers
          use_remote_address: true
          http_filters:
          - name: envoy.filters.http.local_ratelimit
            typed_config:
              \"@type\": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
              stat_prefix: local
          - name: envoy.filters.http.router
            typed_config:
              \"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
          route_config:
            name: local
            virtual_hosts:
            - name: all
              domains: [\"*\"]
              routes:
              - match: {{ path: /api/refused }}
                route: {{ cluster: api }}
                {refused}
              - match: {{ prefix: / }}
                route: {{ cluster: api, timeout: 0s }}
                {ample}
  clusters:
  - name: api
    type: STATIC
    connect_timeout: 5s
    load_assignment:
      cluster_name: api
      endpoints: [{{ lb_endpoints: [{{ endpoint: {{ address: {{ socket_address: {{ address: {host}, port_value: {port} }} }} }} }}] }}]
",
        ip = listen.ip(),
        listen_port = listen.port(),
        refused = limit("refused", 2, "86400s"),
        ample = limit("ample", 1_000_000_000, "1s"),
    )
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Attribute, Request, Time};
    use tollgate_ruleset::{Charges, CompileOptions, RuleSet};

    use super::*;

    #[test]
    fn three_rules_count_what_is_forwarded_and_one_more_refuses() {
        let file = tollgate_rules::read("bench", RULES).unwrap();
        let set = RuleSet::compile(&[file], &CompileOptions::reproducible()).unwrap();
        for (endpoint, rules) in [("GET /api/orders/8a6f1e90", 3), ("GET /api/refused", 4)] {
            let request = Request::new().with(Attribute::Ip, "127.0.0.1").with(Attribute::Endpoint, endpoint);
            let mut charges = Charges::default();
            set.charges(&request, Time::ZERO, &mut charges).unwrap();
            assert_eq!(charges.charges.len(), rules, "{endpoint}");
        }
    }
}
