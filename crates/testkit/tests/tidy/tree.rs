//! The files of the repository: what git tracks or would track, or the whole tree where there is no git.
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
    let mut paths = from_git().unwrap_or_else(from_walk);
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

/// `None` outside a checkout. A copy that sits inside an unrelated checkout lists nothing of ours: `None` as well.
fn from_git() -> Option<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(&*ROOT);
    let output = git.output().ok().filter(|output| output.status.success())?;
    let listing = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<String> = listing.split_terminator('\0').map(str::to_owned).collect();
    paths.iter().any(|path| path == "Cargo.toml").then_some(paths)
}

fn from_walk() -> Vec<String> {
    let ignored = fs::read_to_string(ROOT.join(".gitignore")).unwrap_or_default();
    let mut skipped: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('/')).collect();
    skipped.push(".git");
    let mut found = Vec::new();
    walk("", &skipped, &mut found);
    found
}

fn walk(folder: &str, skipped: &[&str], found: &mut Vec<String>) {
    let entries = fs::read_dir(ROOT.join(folder)).expect("a folder of the repository can be read");
    for entry in entries {
        let entry = entry.expect("an entry of the repository can be read");
        let name = entry.file_name().into_string().expect("file names are UTF-8");
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        let is_folder = entry.file_type().expect("an entry has a type").is_dir();
        match is_folder {
            _ if skipped.contains(&path.as_str()) => {}
            true => walk(&path, skipped, found),
            false => found.push(path),
        }
    }
}

#[test]
fn git_and_the_walk_see_the_same_sources() {
    let Some(mut listed) = from_git() else { return };
    let is_source = |path: &String| path.starts_with("crates/") && path.ends_with(".rs");
    listed.retain(|path| is_source(path) && ROOT.join(path).is_file());
    listed.sort();
    let mut walked: Vec<String> = from_walk().into_iter().filter(is_source).collect();
    walked.sort();
    assert_eq!(listed, walked);
}
