//! `cargo metadata`, as far as the rules read it.

use std::process::{Command, Output};

use serde_json::Value;

use crate::tree::ROOT;

/// The members of the workspace with the dependencies they declare; needs nothing but the manifests.
pub fn members() -> Vec<Value> {
    let metadata = parse(&cargo(&["--no-deps", "--offline"]));
    list(&metadata, "packages")
}

/// Every package that the lock file of a manifest can bring in, and who depends on whom.
///
/// Offline first. Only a machine that never fetched what other platforms need goes to the registry, as a build would.
pub fn resolved(manifest: &str) -> Value {
    let flags = ["--all-features", "--locked", "--manifest-path", manifest];
    let offline = cargo(&[flags.as_slice(), &["--offline"]].concat());
    if offline.status.success() { parse(&offline) } else { parse(&cargo(&flags)) }
}

/// The elements of a list inside a JSON object; none if it is not there.
pub fn list(object: &Value, field: &str) -> Vec<Value> {
    object.get(field).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// A text inside a JSON object; empty if it is not there or null.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn cargo(flags: &[&str]) -> Output {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(["metadata", "--format-version", "1"]).args(flags).current_dir(&*ROOT);
    command.output().expect("cargo starts")
}

#[track_caller]
fn parse(output: &Output) -> Value {
    assert!(
        output.status.success(),
        "\n\n{}\nIf a lock file is out of date, run `cargo metadata` (for the fuzz targets with \
         `--manifest-path fuzz/Cargo.toml`) and commit the change; if a package is missing, run \
         `cargo fetch --locked` with the same option.\n",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}
