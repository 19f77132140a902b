//! Words that do not belong into the repository. The needles are glued together so that they do not find themselves.

use crate::expect_none;
use crate::tree::{self, TextFile};

/// What is unfinished, and what hides it.
const UNFINISHED: &[&str] = &[concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[", "ignore")];

/// Where builds happen: such a path means nothing to anyone else.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/tmp/", "bash")];

/// Where packages come from is up to Cargo, apt and pip, and to the mirror that a machine configures.
const REGISTRIES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("static.rust-lang", ".org"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("npmjs", ".org"),
    concat!("deb.debian", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("docker", ".io"),
    concat!("ghcr", ".io"),
    concat!("quay", ".io"),
];

const CLOCK_LINT: &str = concat!("clippy::disallowed", "_methods");

/// The homes of the real clock and the real sleep: a file, or a folder with its slash.
const CLOCK_HOMES: &[&str] =
    &["crates/store/src/clock.rs", "crates/engine/src/sleep.rs", "crates/lab/src/patience.rs", "bench/"];

#[test]
fn nothing_is_left_unfinished() {
    expect_none(
        offences(UNFINISHED, |_| true),
        "Finish it or take it out: a test runs or goes, and what does not exist yet belongs into an issue.",
    );
}

#[test]
fn no_path_of_a_build_machine() {
    expect_none(
        offences(MACHINE_PATHS, is_start_of_path),
        "Use a path relative to the repository, or a temporary folder; in examples, another word.",
    );
}

#[test]
fn no_host_name_of_a_registry() {
    expect_none(
        offences(REGISTRIES, |_| true),
        "Say \"the registry\" and leave its address to the package client, so that mirrors keep working.",
    );
}

#[test]
fn only_its_homes_touch_the_real_clock() {
    let strangers = tree::texts_ending_in(".rs").filter(|file| !is_clock_home(&file.path));
    expect_none(
        strangers.flat_map(|file| offences_in(file, CLOCK_LINT, |_| true)).collect(),
        "Take a Clock, or time as a value. A new home of the real clock needs a line in CLOCK_HOMES and a reason.",
    );
}

/// Every line with one of the needles, if `counts` agrees with what stands before it. Lock files are Cargo's own.
fn offences(needles: &[&str], counts: fn(before: &str) -> bool) -> Vec<String> {
    let ours = tree::texts().filter(|file| !file.path.ends_with("Cargo.lock"));
    ours.flat_map(|file| needles.iter().flat_map(move |needle| offences_in(file, needle, counts))).collect()
}

fn offences_in(file: &TextFile, needle: &str, counts: fn(before: &str) -> bool) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    let found = lines.filter(|(_, line)| line.match_indices(needle).any(|(at, _)| line.get(..at).is_some_and(counts)));
    found.map(|(number, _)| format!("{}:{}: {needle}", file.path, number + 1)).collect()
}

/// Whether a path that begins after `before` is absolute, rather than the tail of a longer one.
fn is_start_of_path(before: &str) -> bool {
    !before.ends_with(|last: char| last.is_alphanumeric() || "_-.}*)".contains(last))
}

fn is_clock_home(path: &str) -> bool {
    CLOCK_HOMES.iter().any(|home| path == *home || (home.ends_with('/') && path.starts_with(home)))
}
