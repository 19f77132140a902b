//! The Rust files of the workspace, each split into production code, test code and comments.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::lexer::{Split, split};
use crate::tree;

/// One file.
#[derive(Debug)]
pub struct Source {
    pub path: String,
    /// The folder of its crate: `crates/core`, `bench`.
    pub home: String,
    /// Its module path inside the crate; nothing for files outside of `src`.
    pub module: Option<Vec<String>>,
    /// Code that is shipped, without comments and with empty literals.
    pub code: String,
    /// Code of tests, in the same form.
    pub tests: String,
    pub comments: String,
}

static SOURCES: LazyLock<Vec<Source>> =
    LazyLock::new(|| read(tree::texts_ending_in(".rs").map(|file| (file.path.as_str(), file.text.as_str()))));

/// Every Rust file that git lists.
pub fn sources() -> &'static [Source] {
    &SOURCES
}

/// Splits files, given as path and text.
pub fn read<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Source> {
    let mut sources: Vec<Source> = files.map(|(path, text)| source(path, text)).collect();
    let test_modules: BTreeSet<String> = sources.iter().flat_map(test_modules).collect();
    for source in &mut sources {
        let is_below = |module: &String| source.path.strip_prefix(module.as_str()).is_some_and(ends_name);
        if is_test_path(&source.path) || test_modules.iter().any(is_below) {
            let code = std::mem::take(&mut source.code);
            source.tests.push_str(&code);
        }
    }
    sources
}

fn source(path: &str, text: &str) -> Source {
    let Split { code, comments } = split(text);
    let (code, tests) = without_tests(&code);
    let (home, module) = place(path);
    Source { path: path.to_owned(), home, module, code, tests, comments }
}

/// The crate and the module of a path.
fn place(path: &str) -> (String, Option<Vec<String>>) {
    let parts: Vec<&str> = path.split('/').collect();
    let depth = if path.starts_with("crates/") { 2 } else { 1 };
    let (home, inside) = parts.split_at(depth.min(parts.len()));
    let module = match inside {
        ["src", "bin", ..] => None,
        ["src", folders @ .., file] => {
            let stem = file.trim_end_matches(".rs");
            let own = (!["lib", "main", "mod"].contains(&stem)).then_some(stem);
            Some(folders.iter().copied().chain(own).map(str::to_owned).collect())
        }
        _ => None,
    };
    (home.join("/"), module)
}

/// Whether all of a file is for tests, by its path.
fn is_test_path(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.split('/').any(|part| ["tests", "benches", "examples"].contains(&part))
}

/// Whether a module's name ends where this rest of a path begins.
fn ends_name(rest: &str) -> bool {
    rest == ".rs" || rest.starts_with('/')
}

/// The files of `#[cfg(test)] mod NAME;`, as paths without `.rs`.
fn test_modules(source: &Source) -> Vec<String> {
    let path = &source.path;
    let folder = match path.rsplit_once('/') {
        Some((folder, "lib.rs" | "main.rs" | "mod.rs")) => folder,
        _ => path.trim_end_matches(".rs"),
    };
    let names = source.tests.lines().filter_map(|line| line.trim().split_once("mod ")?.1.strip_suffix(';'));
    names.map(|name| format!("{folder}/{name}")).collect()
}

/// Code without and with `#[cfg(test)]`. Items end where their brackets do.
fn without_tests(code: &str) -> (String, String) {
    let (mut production, mut tests) = (String::new(), String::new());
    let mut open: Option<i32> = None; // brackets that are open in an item of tests
    for line in code.lines() {
        if open.is_none() && is_test_attribute(line) {
            open = Some(0);
            continue;
        }
        let Some(depth) = open else {
            production.push_str(line);
            production.push('\n');
            continue;
        };
        tests.push_str(line);
        tests.push('\n');
        let text = line.trim();
        let depth = depth + text.chars().map(bracket).sum::<i32>();
        let is_over = depth == 0 && text.ends_with(['}', ';', ',']) && !text.starts_with("#[");
        open = (!is_over).then_some(depth);
    }
    (production, tests)
}

fn is_test_attribute(line: &str) -> bool {
    let text = line.trim();
    let is_word = |word: &str| word == "test";
    text.starts_with("#[cfg(")
        && !text.contains("not(test)")
        && text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(is_word)
}

fn bracket(letter: char) -> i32 {
    match letter {
        '(' | '[' | '{' => 1,
        ')' | ']' | '}' => -1,
        _ => 0,
    }
}

#[test]
fn tests_are_cut_out_of_a_file() {
    let text = "fn a() {}\n#[cfg(test)]\nfn b(\n    c: u8,\n) {\n    d();\n}\n#[cfg(not(test))]\nfn e() {}\n\
                #[cfg(all(test, unix))]\n#[path = \"f\"]\nmod g;\nstruct H {\n    #[cfg(test)]\n    i: u8,\n    j: u8,\n}\n";
    let (production, tests) = without_tests(text);
    assert_eq!(production, "fn a() {}\n#[cfg(not(test))]\nfn e() {}\nstruct H {\n    j: u8,\n}\n");
    assert_eq!(tests, "fn b(\n    c: u8,\n) {\n    d();\n}\n#[path = \"f\"]\nmod g;\n    i: u8,\n");
}

#[test]
fn modules_of_tests_are_tests() {
    let files = [
        ("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod rig;\n"),
        ("crates/a/src/b.rs", "fn b() {}\n"),
        ("crates/a/src/rig.rs", "fn rig() {}\n"),
        ("crates/a/src/rigging.rs", "fn rigging() {}\n"),
        ("crates/a/src/b/tests.rs", "fn tests() {}\n"),
        ("crates/a/tests/all/main.rs", "fn main() {}\n"),
    ];
    let sources = read(files.into_iter());
    let production: Vec<&str> =
        sources.iter().filter(|source| source.code.contains("fn ")).map(|source| source.path.as_str()).collect();
    assert_eq!(production, ["crates/a/src/b.rs", "crates/a/src/rigging.rs"]);
}

#[test]
fn paths_name_crates_and_modules() {
    let module = |path: &str| place(path).1.map(|parts| parts.join("::"));
    assert_eq!(place("crates/core/src/lib.rs").0, "crates/core");
    assert_eq!(place("bench/src/main.rs").0, "bench");
    assert_eq!(module("crates/core/src/lib.rs").as_deref(), Some(""));
    assert_eq!(module("crates/core/src/a/b.rs").as_deref(), Some("a::b"));
    assert_eq!(module("crates/core/src/a/mod.rs").as_deref(), Some("a"));
    assert_eq!(module("crates/core/src/bin/a.rs"), None);
    assert_eq!(module("crates/core/tests/a.rs"), None);
}
