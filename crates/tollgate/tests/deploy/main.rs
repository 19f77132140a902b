//! What `deploy/` ships: systemd units, the image, the compose file, the chart and the manifests made from it, the package.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod chart;
mod compose;
mod image;
mod package;
mod units;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tollgate_config::Setting;
use tollgate_lab::program;

/// The path of a file or folder of the repository.
fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// The text of a file below `deploy/`.
fn text(name: &str) -> String {
    fs::read_to_string(path("deploy").join(name)).unwrap_or_else(|error| panic!("deploy/{name}: {error}"))
}

/// Runs a program, and returns what it printed, whatever its exit code.
fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Everything that a program printed; panics with it if the program failed.
fn run_ok(command: &mut Command) -> String {
    let output = run(command);
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}:\n{printed}");
    printed
}

/// The documents of a YAML text, read by PyYAML: aliases and merge keys are those of the tools that read these files.
fn yaml(text: &str) -> Vec<Value> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let script = "import json, sys, yaml; json.dump(list(yaml.safe_load_all(open(sys.argv[1]))), sys.stdout)";
    let output = run(Command::new(program::named("python")).args(["-c", script]).arg(file.path()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A variable such as `TOLLGATE_HTTP` must name a setting.
fn assert_setting(variable: &str) {
    let name = variable.strip_prefix("TOLLGATE_").unwrap_or_else(|| panic!("{variable} is no variable of ours"));
    assert!(Setting::named(&name.to_lowercase()).is_some(), "{variable}: there is no such setting");
}
