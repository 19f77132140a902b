//! Names of rules from descriptors.

use std::fmt::Write;

use tollgate_core::{KeyHasher, Secret};

/// Longest part of a path in a name with a digest.
const SHOWN_MAX: usize = 100;

/// The name of the rule at the end of a path: `tenant=gold, path`, so that people find it in the file. It does not
/// depend on the numbers or the name of the limit, so that its usage survives a change of those.
///
/// A name is a valid label and belongs to one path only: a path that is no label, or whose text is ambiguous, gets a
/// digest.
pub fn rule_name<'a>(path: impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone) -> String {
    let (mut text, mut plain) = (String::new(), true);
    for (key, value) in path.clone() {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(key);
        if let Some(value) = value {
            text.push('=');
            text.push_str(value);
        }
        plain &= [Some(key), value].into_iter().flatten().all(|part| !part.contains([',', '=', '#']));
    }
    if plain && crate::check::is_label(&text) && text != OVERRIDE {
        return text;
    }
    let mut hasher = KeyHasher::new(Secret::new([0; 16]));
    for (key, value) in path {
        hasher.part(key.as_bytes());
        match value {
            Some(value) => hasher.part(value.as_bytes()),
            None => hasher.missing(),
        }
    }
    let [digest, _] = hasher.finish().0;
    let mut name: String = label(&text).chars().take(SHOWN_MAX).collect();
    let _ = write!(name, "#{digest:016x}"); // writing to a String cannot fail
    name
}

/// The name of the rule for limits that requests contain.
pub const OVERRIDE: &str = "override";

/// The text with characters replaced that are not allowed in a header or a label.
pub fn label(text: &str) -> String {
    let kept = |letter: char| matches!(letter, ' '..='~') && letter != '"' && letter != '\\';
    text.trim().chars().map(|letter| if kept(letter) { letter } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_a_name_of_its_own_that_can_be_a_label() {
        let long = "x".repeat(500);
        let paths: [&[(&str, Option<&str>)]; 10] = [
            &[("a", None)],
            &[("a", Some("1"))],
            &[("a=1", None)],
            &[("a", Some("1")), ("b", None)],
            &[("a", Some("1, b"))],
            &[("a", Some("naïve"))],
            &[("a", Some("naive\n"))],
            &[("a", Some(&long))],
            &[("override", None)],
            &[("a", Some(" "))],
        ];
        let names: std::collections::BTreeSet<String> =
            paths.iter().map(|path| rule_name(path.iter().copied())).collect();
        assert_eq!(names.len(), paths.len(), "{names:?}");
        assert!(names.iter().all(|name| crate::check::is_label(name)), "{names:?}");
        assert!(names.contains("a=1, b") && !names.contains(OVERRIDE), "{names:?}");
    }
}
