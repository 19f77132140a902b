//! Rules files that several tests read.

/// The file of a first user, exactly as the issue has it.
pub(crate) const FIRST: &str = r#"rules:
  - match: { tier: free,  endpoint: "POST /api/*" }
    limit:  { requests: 10,   window: 1s,  algorithm: token_bucket, burst: 20 }
  - match: { tier: free,  endpoint: "*" }
    limit:  { requests: 1000, window: 1h,  algorithm: sliding_window }
  - match: { tier: paid,  endpoint: "*" }
    limit:  { requests: 100,  window: 1s,  algorithm: token_bucket, burst: 200 }
key_by:   api_key        # or user_id, ip, "user_id:endpoint"
on_fail:  allow
"#;

/// The file of DESIGN.md.
pub(crate) const DESIGN: &str = r#"version: 1
key_by: api_key            # default for every rule
on_fail: local             # allow | deny | local (the default: a per-node share)
rules:
  - name: free-writes
    match: { tier: free, endpoint: "POST /api/*" }
    limit: { requests: 10, window: 1s, algorithm: token_bucket, burst: 20 }
  - name: free-hourly
    match: { tier: free, endpoint: "*" }
    limit: { requests: 1000, window: 1h, algorithm: sliding_window }
  - name: export-per-key
    match: { endpoint: "GET /export/*" }
    key_by: [api_key, endpoint]
    limit: { requests: 6, window: 1m, algorithm: gcra }
    cost: 1
    mode: enforce           # enforce | shadow | off
    consistency: exact      # exact | leased | async
    on_fail: deny
  - name: anonymous
    match: { ip: "!10.0.0.0/8" }
    key_by: "api_key|ip"    # first one present
    limit: { requests: 10, window: 1s }
  - name: in-flight
    key_by: global
    limit: { algorithm: concurrency, slots: 5000, slot_ttl: 10s }
"#;

/// Every field there is.
pub(crate) const FULL: &str = r#"# Everything at once.

version: 1
namespace: shop
key_by: "user_id:endpoint"
on_fail: deny
allow_block_all: true
ipv6_prefix: 56
escaped_slash: keep
case: insensitive

rules:
  # Writes are dear.
  - name: writes
    description: |
      Two lines
      of text.
    resource: orders
    match:
      tier: [free, "trial*", "!trial-vip"]
      endpoint:
        - "POST,PUT /orders/{id}/*"
        - "!/orders/{id}/preview"   # not this one
      ip: ["10.0.0.0/8", "!10.1.0.0/16"]
      region: 'eu'
    case: sensitive
    key_by: [api_key|ip, endpoint]
    missing: share
    limit: { requests: 60, window: 1m, algorithm: leaky_bucket, burst: 20 }
    cost:
      - { match: { endpoint: "/orders/*/export" }, cost: 10 }
      - { cost: 2 }
    mode: shadow
    consistency: leased
    lease: { tokens: 5 }
    on_fail: allow
    count_denied: true
    max_debt: 100
    soft: 20%
    shards: 2
    max_memory: 25%
    doc_url: https://example.com/limits
    error_code: orders.too_many-writes

  - name: queue
    limit: { requests: 10, window: 1s, algorithm: leaky_bucket, max_delay: 2s }
  - name: window
    limit: { requests: 10, window: 1h30m, algorithm: fixed_window, align: key }
  - name: log
    limit: { requests: 10, window: 250ms, algorithm: sliding_window_log }
  - name: vip
    match: { tier: vip }
    unlimited: true
    replaces: [queue, window]
  - name: closed
    limit: { requests: 0, window: 1s }
    # the end of the list

clients:
  - { client_key: "user:42", tier: vip, org: acme, attributes: { region: eu, plan: "7" } }
  - client_key: key:abc

overrides:
  - client_key: "user:42"
    rule: queue
    requests: 100
    valid_from: 2026-12-01T00:00:00Z
    valid_until: 2027-01-01T00:00:00+01:00
    reason: launch
  - { client_key: "key:abc", rule: writes, requests: 600, burst: 100 }
  - { client_key: "key:abc", rule: log, unlimited: true }
# the end
"#;
