//! The files of the repository: what git tracks or would track.
//!
//! Files that are not committed yet count, so that the rules speak before the commit and not after it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// One text file, with its path from the root, separated by `/`.
pub struct TextFile {
    pub path: String,
    pub text: String,
}

/// Asked at run time first: clones that share a target folder share this binary too, and each means itself.
pub static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here).join("../..").canonicalize().expect("the repository is where Cargo says")
});

/// Paths from the root, sorted.
static PATHS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut paths = from_git();
    paths.retain(|path| ROOT.join(path).is_file());
    paths.sort();
    paths.dedup();
    paths
});

/// Every file that reads as text, but for the raw inputs of tests, where every byte is meant.
static TEXTS: LazyLock<Vec<TextFile>> = LazyLock::new(|| {
    let texts = paths().iter().filter(|path| !is_raw_input(path)).filter_map(|path| {
        let text = String::from_utf8(fs::read(ROOT.join(path)).ok()?).ok()?;
        Some(TextFile { path: path.clone(), text })
    });
    texts.filter(|file| !file.text.contains('\0')).collect()
});

pub fn paths() -> &'static [String] {
    &PATHS
}

pub fn texts() -> impl Iterator<Item = &'static TextFile> {
    TEXTS.iter()
}

pub fn texts_ending_in(ending: &str) -> impl Iterator<Item = &'static TextFile> {
    TEXTS.iter().filter(move |file| file.path.ends_with(ending))
}

/// The text of one file, if it is there.
pub fn text_of(path: &str) -> Option<&'static str> {
    TEXTS.iter().find(|file| file.path == path).map(|file| file.text.as_str())
}

fn is_raw_input(path: &str) -> bool {
    path.starts_with("fuzz/corpus/") || path.split('/').any(|part| part == "fixtures")
}

/// What git lists, also outside a checkout: in a copy without `.git`, an empty repository beside it tells what would be
/// tracked.
fn from_git() -> Vec<String> {
    if ROOT.join(".git").exists() {
        return listed(&mut Command::new("git"), &["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    }
    let beside = tempfile::tempdir().expect("a folder for a repository");
    listed(Command::new("git").arg("--git-dir").arg(beside.path()), &["init", "--quiet", "--bare"]);
    let mut git = Command::new("git");
    git.arg("--git-dir").arg(beside.path()).arg("--work-tree").arg(&*ROOT);
    listed(&mut git, &["ls-files", "-z", "--others", "--exclude-standard"])
}

#[track_caller]
fn listed(git: &mut Command, arguments: &[&str]) -> Vec<String> {
    let output = git.args(arguments).current_dir(&*ROOT).output();
    let output = output.unwrap_or_else(|error| panic!("git is missing ({error}): install it, as CONTRIBUTING.md says"));
    assert!(output.status.success(), "git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    let listing = String::from_utf8(output.stdout).expect("file names are UTF-8");
    listing.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn the_sources_are_listed() {
    for path in ["Cargo.toml", "script/setup", "crates/testkit/tests/tidy/tree.rs"] {
        assert!(text_of(path).is_some(), "{path} is not among the {} files that git lists", paths().len());
    }
}
