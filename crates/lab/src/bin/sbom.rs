//! `cargo run -p tollgate-lab --bin sbom -- FILE`: writes the bill of materials of the program, CycloneDX 1.6: every crate that is
//! compiled into it, with version, licence and digest. Made from cargo's own resolution and the lock file, so that the same
//! commit gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

const PROGRAM: &str = "tollgate";
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

fn main() -> Result<()> {
    let Some(file) = std::env::args().nth(1) else { bail!("usage: sbom FILE") };
    let output = Command::new("cargo")
        .args(["metadata", "--locked", "--format-version", "1", "--filter-platform", PLATFORM])
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let lock =
        fs::read_to_string("Cargo.lock").context("cannot read Cargo.lock: run this at the top of the repository")?;
    let bill = bill(&metadata, &digests(&lock))?;
    fs::write(&file, format!("{bill:#}\n")).with_context(|| format!("cannot write {file}"))
}

/// The SHA-256 of every crate that comes from a registry, by name and version, as the lock file has it.
fn digests(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |package: &str, name: &str| {
        let start = format!("{name} = \"");
        let line = package.lines().find_map(|line| line.strip_prefix(&start))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let packages = lock.split("[[package]]").skip(1);
    let known = packages.filter_map(|package| {
        Some(((field(package, "name")?, field(package, "version")?), field(package, "checksum")?))
    });
    known.collect()
}

fn bill(metadata: &Value, digests: &BTreeMap<(String, String), String>) -> Result<Value> {
    let packages: BTreeMap<&str, &Value> =
        list(metadata, "/packages").filter_map(|package| Some((text(package, "id")?, package))).collect();
    let nodes: BTreeMap<&str, &Value> =
        list(metadata, "/resolve/nodes").filter_map(|node| Some((text(node, "id")?, node))).collect();
    let root = packages.values().find(|package| text(package, "name") == Some(PROGRAM));
    let root = root.and_then(|package| text(package, "id")).context("cargo metadata does not know the program")?;
    let reached = reached(root, &nodes);
    let components: Vec<Value> = reached
        .iter()
        .filter(|id| **id != root)
        .filter_map(|id| packages.get(id))
        .map(|package| component(package, "library", digests))
        .collect();
    let dependencies: Vec<Value> = reached
        .iter()
        .filter_map(|id| Some((packages.get(id)?, nodes.get(id)?)))
        .map(|(package, node)| {
            let on: BTreeSet<String> = compiled_in(node).filter_map(|id| packages.get(id)).map(|p| purl(p)).collect();
            json!({ "ref": purl(package), "dependsOn": on })
        })
        .collect();
    let program = packages.get(root).map(|package| component(package, "application", digests));
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": program },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// The packages that the program is compiled from, itself included. What only tests use is not.
fn reached<'a>(root: &'a str, nodes: &BTreeMap<&'a str, &'a Value>) -> BTreeSet<&'a str> {
    let (mut reached, mut waiting) = (BTreeSet::new(), vec![root]);
    while let Some(id) = waiting.pop() {
        if reached.insert(id) {
            waiting.extend(nodes.get(id).into_iter().flat_map(|node| compiled_in(node)));
        }
    }
    reached
}

/// The ids of the packages that a package depends on, for its code or its build script.
fn compiled_in(node: &Value) -> impl Iterator<Item = &str> {
    let is_used = |dependency: &&Value| list(dependency, "/dep_kinds").any(|kind| text(kind, "kind") != Some("dev"));
    list(node, "/deps").filter(is_used).filter_map(|dependency| text(dependency, "pkg"))
}

fn component(package: &Value, kind: &str, digests: &BTreeMap<(String, String), String>) -> Value {
    let member = |name: &str| text(package, name).unwrap_or_default().to_owned();
    let key = (member("name"), member("version"));
    let hashes: Vec<Value> =
        digests.get(&key).map(|digest| json!({ "alg": "SHA-256", "content": digest })).into_iter().collect();
    json!({
        "type": kind,
        "bom-ref": purl(package),
        "name": member("name"),
        "version": member("version"),
        "purl": purl(package),
        // Old manifests separate alternatives by a slash.
        "licenses": [{ "expression": member("license").replace('/', " OR ") }],
        "hashes": hashes,
    })
}

fn purl(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(package, "name").unwrap_or_default(), text(package, "version").unwrap_or_default())
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}
