//! `deny.toml` without cargo-deny: the licences, the sources and the bans of everything in the lock files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::deny::{Ban, Policy};
use crate::metadata::{list, resolved, text};
use crate::tree::ROOT;
use crate::{expect_none, spdx};

const ADVICE: &str =
    "Choose another crate. If this one is right after all, change deny.toml and give the reason there.";

#[test]
fn dependencies_keep_to_the_policy() {
    expect_none(offences("Cargo.toml"), ADVICE);
}

#[test]
fn dependencies_of_the_fuzz_targets_keep_to_the_policy() {
    expect_none(offences("fuzz/Cargo.toml"), ADVICE);
}

fn offences(manifest: &str) -> Vec<String> {
    let (policy, metadata) = (Policy::of_this_repository(), resolved(manifest));
    let packages = list(&metadata, "packages");
    assert!(!packages.is_empty(), "cargo metadata lists no package of {manifest}");
    let mut offences = licence_offences(&packages, &policy.licences);
    offences.extend(source_offences(&packages));
    offences.extend(policy.bans.iter().flat_map(|ban| ban_offences(&metadata, &packages, ban)));
    offences
}

fn licence_offences(packages: &[Value], allowed: &[String]) -> Vec<String> {
    let strangers = packages.iter().filter(|package| !spdx::is_allowed(text(package, "license"), allowed));
    strangers.map(|package| format!("{}: licence \"{}\"", title(package), text(package, "license"))).collect()
}

/// Paths must lie in the repository; everything else comes from one registry.
fn source_offences(packages: &[Value]) -> Vec<String> {
    let mut offences = Vec::new();
    let mut registries = BTreeSet::new();
    for package in packages {
        match text(package, "source") {
            "" if Path::new(text(package, "manifest_path")).starts_with(&*ROOT) => {}
            "" => offences.push(format!("{}: a path outside of the repository", title(package))),
            source if source.starts_with("registry+") || source.starts_with("sparse+") => {
                registries.insert(source);
            }
            source => offences.push(format!("{}: from {source}", title(package))),
        }
    }
    if registries.len() > 1 {
        offences.push(format!("more than one registry: {registries:?}"));
    }
    offences
}

fn ban_offences(metadata: &Value, packages: &[Value], ban: &Ban) -> Vec<String> {
    let names: BTreeMap<&str, &str> =
        packages.iter().map(|package| (text(package, "id"), text(package, "name"))).collect();
    let name_of = |id: &str| names.get(id).copied().unwrap_or_default().to_owned();
    let mut offences = Vec::new();
    for node in metadata.get("resolve").map(|resolve| list(resolve, "nodes")).unwrap_or_default() {
        let parent = name_of(text(&node, "id"));
        let uses = list(&node, "deps").iter().any(|dependency| name_of(text(dependency, "pkg")) == ban.name);
        if uses && !ban.wrappers.contains(&parent) {
            offences.push(format!("{parent} → {}: banned", ban.name));
        }
    }
    offences
}

fn title(package: &Value) -> String {
    format!("{} {}", text(package, "name"), text(package, "version"))
}
