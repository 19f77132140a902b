//! Names of rules: an alphabet that is safe in URLs, headers, metric labels, file names and shells (RELIABILITY J14).
//!
//! Names of rules from Envoy descriptors (`tenant=gold, path`) have a wider alphabet, [`is_label`]: rules files do not
//! contain them. Database rows that are older than this check keep their names.
//!
//! [`is_label`]: super::is_label

use std::collections::HashMap;

use crate::problem::{Problem, quote};
use crate::spec::RuleFile;

/// Longest name of a rule.
pub const RULE_NAME_MAX: usize = 64;

/// Whether a text can be the name or id of a rule.
pub fn is_rule_name(name: &str) -> bool {
    (1..=RULE_NAME_MAX).contains(&name.len()) && name.bytes().all(is_letter)
}

/// What [`is_rule_name`] accepts, in words, and the nearest valid name.
pub fn rule_name_help(name: &str) -> String {
    format!("use 1 to {RULE_NAME_MAX} letters, digits, `.`, `_` and `-`, such as `{}`", nearest_rule_name(name))
}

/// The nearest valid name: other characters become `-`, and long texts are cut.
pub fn nearest_rule_name(text: &str) -> String {
    let mut name = String::new();
    for letter in text.trim().chars().take(4 * RULE_NAME_MAX) {
        match u8::try_from(letter).is_ok_and(is_letter) {
            true => name.push(letter),
            false if name.is_empty() || name.ends_with('-') => {}
            false => name.push('-'),
        }
    }
    name.truncate(RULE_NAME_MAX);
    let name = name.trim_end_matches('-');
    if name.is_empty() { "rule".to_owned() } else { name.to_owned() }
}

/// Problems for names that differ only in case. [`across`](super::across) finds equal names.
pub(crate) fn case_duplicates(file: &RuleFile) -> Vec<Problem> {
    let mut seen: HashMap<String, &str> = HashMap::new();
    let mut problems = Vec::new();
    for (index, rule) in file.rules.iter().enumerate() {
        let Some(name) = rule.name.as_deref() else { continue };
        let first = *seen.entry(name.to_ascii_lowercase()).or_insert(name);
        if first != name {
            let message = format!("the names {} and {} differ only in upper and lower case", quote(first), quote(name));
            let problem = Problem::error("duplicate-name", rule.at, format!("{}.name", file.path_of(index)), message);
            problems.push(problem.help("give one of them another name"));
        }
    }
    problems
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_a_name() {
        let long = "x".repeat(200);
        let cases = [
            ("free tier", "free-tier"),
            ("GET /api/{id}", "GET-api-id"),
            ("größe", "gr-e"),
            ("  \"a\\b\"\n", "a-b"),
            ("tenant=gold, path", "tenant-gold-path"),
            ("", "rule"),
            ("日本", "rule"),
            (&long, long.get(..64).unwrap_or_default()),
        ];
        for (text, name) in cases {
            assert_eq!(nearest_rule_name(text), name, "{text}");
            assert!(is_rule_name(name) && !is_rule_name(text), "{text}");
        }
        assert!(is_rule_name("a.B_c-9") && is_rule_name(&"x".repeat(64)) && !is_rule_name(&"x".repeat(65)));
    }
}
