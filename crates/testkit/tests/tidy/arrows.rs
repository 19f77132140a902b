//! Which crate may know which: `tollgate → server → engine → {rules, store} → core`. Cargo refuses a cycle; these tables refuse
//! the arrow that is merely wrong. What tests use is free.

use serde_json::Value;

use crate::expect_none;
use crate::metadata::{list, members, text};

/// A crate, and those of ours that it may depend on. No one but tests and benchmarks depends on testkit.
const ARROWS: &[(&str, &[&str])] = &[
    ("tollgate-core", &[]),
    ("tollgate-proto", &[]),
    ("tollgate-rules", &["tollgate-core"]),
    ("tollgate-store", &["tollgate-core"]),
    ("tollgate-store-redis", &["tollgate-core", "tollgate-store"]),
    ("tollgate-control", &["tollgate-core", "tollgate-rules"]),
    ("tollgate-engine", &["tollgate-core", "tollgate-rules", "tollgate-store"]),
    (
        "tollgate-server",
        &[
            "tollgate-core",
            "tollgate-rules",
            "tollgate-control",
            "tollgate-proto",
            "tollgate-store",
            "tollgate-store-redis",
            "tollgate-engine",
        ],
    ),
    ("tollgate-load", &[]),
    (
        "tollgate",
        &[
            "tollgate-core",
            "tollgate-rules",
            "tollgate-control",
            "tollgate-store",
            "tollgate-store-redis",
            "tollgate-engine",
            "tollgate-server",
            "tollgate-load",
        ],
    ),
    (
        "tollgate-testkit",
        &["tollgate-core", "tollgate-rules", "tollgate-store", "tollgate-store-redis", "tollgate-engine"],
    ),
];

/// The crates without async, I/O or a clock, and everything they may depend on.
const PURE: &[&str] = &["tollgate-core", "tollgate-rules"];
const PURE_DEPENDENCIES: &[&str] =
    &["aho-corasick", "granit-parser", "siphasher", "smallvec", "strsim", "tollgate-core", "unicode-normalization"];

#[test]
fn arrows_point_down() {
    let mut offences = Vec::new();
    for (member, dependency) in dependencies() {
        let below = ARROWS.iter().find(|(name, _)| *name == member).map(|(_, below)| *below);
        let is_ours = dependency == "tollgate" || dependency.starts_with("tollgate-");
        if is_ours && !below.unwrap_or_default().contains(&dependency.as_str()) {
            offences.push(format!("{member} → {dependency}"));
        }
    }
    expect_none(
        offences,
        "Move the code to the crate below, or hand the value in. A new crate needs a line in ARROWS.",
    );
}

#[test]
fn pure_crates_stay_pure() {
    let offences = dependencies().into_iter().filter(|(member, dependency)| {
        PURE.contains(&member.as_str()) && !PURE_DEPENDENCIES.contains(&dependency.as_str())
    });
    expect_none(
        offences.map(|(member, dependency)| format!("{member} → {dependency}")).collect(),
        "core and rules compute and do nothing else. What does no I/O may join PURE_DEPENDENCIES.",
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
