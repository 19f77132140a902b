//! The size, the opening and the name of a file.

use crate::expect_none;
use crate::ratchets::OVERSIZED_FILES;
use crate::tree::{self, TextFile};

const LINES_MAX: usize = 450;
const LINES_MAX_OF_TESTS: usize = 900;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "manager", "managers", "misc", "common"];

/// Files that others have named.
const PROTOS: &str = "proto/envoy/";

#[test]
fn a_file_holds_one_idea() {
    let offences = tree::texts_ending_in(".rs").filter_map(|file| {
        let (lines, allowed) = (file.text.lines().count(), lines_allowed(file));
        (lines > allowed).then(|| format!("{}: {lines} lines, {allowed} allowed", file.path))
    });
    expect_none(offences.collect(), "Give the second idea a file of its own, and long tests the file NAME/tests.rs.");
}

#[test]
fn exceptions_to_the_size_are_still_needed() {
    let offences = OVERSIZED_FILES.iter().filter(|(path, allowed)| {
        let lines = tree::text_of(path).map_or(0, |text| text.lines().count());
        lines < *allowed
    });
    expect_none(
        offences.map(|(path, allowed)| format!("{path}: listed with {allowed} lines, has fewer")).collect(),
        "Lower the number in OVERSIZED_FILES of ratchets.rs, or drop the line.",
    );
}

#[test]
fn a_source_file_opens_with_its_purpose() {
    let sources = tree::texts_ending_in(".rs").filter(|file| is_crate_source(&file.path));
    let offences = sources.filter(|file| !file.text.starts_with("//!"));
    expect_none(
        offences.map(|file| file.path.clone()).collect(),
        "Begin the file with `//!`: what it is, why this shape, what was rejected.",
    );
}

#[test]
fn a_name_says_what_is_inside() {
    let offences = tree::paths().iter().filter(|path| !path.starts_with(PROTOS) && path.split('/').any(is_empty_name));
    expect_none(
        offences.cloned().collect(),
        "Name the file after the type or the idea inside; what has none belongs next to its only user.",
    );
}

fn lines_allowed(file: &TextFile) -> usize {
    if let Some((_, lines)) = OVERSIZED_FILES.iter().find(|(path, _)| *path == file.path) {
        return *lines;
    }
    let is_test = file.path.contains("/tests/") || file.path.ends_with("/tests.rs");
    if is_test { LINES_MAX_OF_TESTS } else { LINES_MAX }
}

/// `crates/NAME/src/…`
fn is_crate_source(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates") && parts.nth(1) == Some("src")
}

fn is_empty_name(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part);
    EMPTY_NAMES.contains(&stem)
}
