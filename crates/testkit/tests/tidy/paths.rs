//! Paths in Rust code: which names a file imports, or mentions, from its own crate.

/// Every path that begins with `crate`, `super` or `self`, groups spelled out: `super::{a, b::C}` is two paths.
pub fn paths(code: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for root in ["crate", "super", "self"] {
        for (at, _) in code.match_indices(root) {
            let is_whole = !code[..at].ends_with(|letter: char| is_name(letter) || letter == ':');
            let is_visibility = code[..at].ends_with("(in ");
            if is_whole && !is_visibility && code[at + root.len()..].starts_with("::") {
                tree(&code[at..], &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// The paths of `use` declarations that begin with another name: a module below this one, or a crate.
pub fn uses(code: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        if code[..at].ends_with(|letter: char| is_name(letter)) {
            continue;
        }
        tree(code[at + 4..].trim_start(), &mut Vec::new(), &mut found);
    }
    found
}

/// Reads one path, or a group of them; answers what follows.
fn tree<'a>(text: &'a str, before: &mut Vec<&'a str>, found: &mut Vec<Vec<&'a str>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = rest.trim_start();
            if rest.is_empty() || rest.starts_with('}') {
                return rest.get(1..).unwrap_or_default();
            }
            let after = tree(rest, before, found).trim_start();
            rest = match after.strip_prefix(',') {
                Some(next) => next,
                // ` as Name`, or nothing that belongs into a path
                None => &after[after.find([',', '}']).unwrap_or(after.len())..],
            };
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
    }
    let end = text.find(|letter: char| !is_name(letter)).unwrap_or(text.len());
    if end == 0 {
        found.extend((!before.is_empty()).then(|| before.clone()));
        return text.strip_prefix('*').unwrap_or(text);
    }
    before.push(&text[..end]);
    let rest = match text[end..].strip_prefix("::") {
        Some(next) if next.starts_with(|letter: char| is_name(letter) || letter == '{' || letter == '*') => {
            tree(next, before, found)
        }
        _ => {
            found.push(before.clone());
            &text[end..]
        }
    };
    before.pop();
    rest
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[test]
fn groups_are_spelled_out() {
    let code = "use super::{a, b::{C, self}, d::E as F,\n    g::*};\nlet h = crate::i::J::new(super::super::k::l::<M>());\n\
                pub(in crate::n) fn o(self) { self::p(); my_crate::q(); }";
    let mut found: Vec<String> = paths(code).iter().map(|path| path.join("::")).collect();
    found.sort();
    found.dedup();
    let expected = [
        "crate::i::J::new",
        "self::p",
        "super::a",
        "super::b::C",
        "super::b::self",
        "super::d::E",
        "super::g",
        "super::super::k::l",
    ];
    assert_eq!(found, expected);
}

#[test]
fn declarations_name_what_is_below() {
    let code = "pub use child::{A, B as C};\nuse std::fmt;\nreuse x::y;";
    let found: Vec<String> = uses(code).iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["child::A", "child::B", "std::fmt"]);
}
