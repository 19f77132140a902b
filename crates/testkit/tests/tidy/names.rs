//! One idea, one name: a type that crosses a module border is the only one of its name in the workspace.

use std::collections::{BTreeMap, BTreeSet};

use crate::ratchets::{self, DUPLICATE_TYPE_NAMES};
use crate::sources::{Source, sources};

/// Names that mean the same thing wherever they are: the arguments of a command, what an `Arc` points at.
const CONVENTIONAL: &[&str] = &["Args", "Command", "Inner"];

#[test]
fn a_visible_type_has_a_name_of_its_own() {
    ratchets::hold(
        &duplicates(sources()),
        DUPLICATE_TYPE_NAMES,
        "DUPLICATE_TYPE_NAMES",
        "Make the type private, or qualify its name by what it is about: `RedisReply`, `LoadPlan`.",
    );
}

/// Every name with the files that define it, if there are several.
fn duplicates(sources: &[Source]) -> Vec<String> {
    let mut files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in sources {
        for name in source.code.lines().filter_map(visible_type) {
            files.entry(name).or_default().insert(&source.path);
        }
    }
    let several = files.into_iter().filter(|(name, files)| files.len() > 1 && !CONVENTIONAL.contains(name));
    several.map(|(name, files)| format!("{name}: {}", files.into_iter().collect::<Vec<_>>().join(", "))).collect()
}

/// The name of the type that a line defines, unless only its own module sees it.
fn visible_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let mut words = rest.strip_prefix(' ')?.split_whitespace().skip_while(|word| *word == "unsafe");
    let keyword = words.next()?;
    if !["struct", "enum", "trait", "type", "union"].contains(&keyword) {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(name.len());
    name.get(..end)
}

#[test]
fn finds_visible_types() {
    let name = visible_type;
    assert_eq!(name("pub struct Rule<'a>(u8);"), Some("Rule"));
    assert_eq!(name("    pub(crate) enum Kind {"), Some("Kind"));
    assert_eq!(name("pub(in crate::a) type Set = u8;"), Some("Set"));
    assert_eq!(name("pub unsafe trait Send: Sync {"), Some("Send"));
    assert_eq!(name("struct Private;"), None);
    assert_eq!(name("pub fn type_of() {}"), None);
    assert_eq!(name("public struct No;"), None);
}

#[test]
fn counts_a_name_once_per_module() {
    let files = [
        ("crates/a/src/one.rs", "#[cfg(unix)]\npub struct Tick;\n#[cfg(windows)]\npub struct Tick;\n"),
        ("crates/a/src/two.rs", "pub struct Args;\npub(super) enum Plan {}\n#[cfg(test)]\npub struct Tick;\n"),
        ("crates/b/src/lib.rs", "pub struct Args;\npub type Plan = u8;\nstruct Tick;\n"),
        ("crates/b/tests/all.rs", "pub struct Plan;\n"),
    ];
    let found = duplicates(&crate::sources::read(files.into_iter()));
    assert_eq!(found, ["Plan: crates/a/src/two.rs, crates/b/src/lib.rs"]);
}
