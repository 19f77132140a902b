//! Warnings about paths that routers read differently.

use super::within;
use crate::endpoint::EndpointPattern;
use crate::path::PathCase;
use crate::problem::Problem;
use crate::spec::RuleSpec;

/// Code of the warning about a case-sensitive path.
pub(super) const CASE: &str = "case-of-path";

/// `:id` is a parameter in other routers and text here; a router that ignores case serves paths that a rule does not
/// match.
pub(super) fn warnings(rule: &RuleSpec, field: &str) -> Vec<Problem> {
    let field = within(field, "match.endpoint");
    let Some(endpoint) = &rule.matches.endpoint else { return Vec::new() };
    let all = || endpoint.any.iter().chain(&endpoint.none);
    let colon =
        all().find_map(|pattern| pattern.path.as_str().split('/').find(|word| is_parameter(word))).map(|word| {
            let message = format!("`{word}` is text here: only paths with a colon match");
            let name: String = word.chars().skip(1).collect();
            Problem::warning("colon-parameter", rule.at, field.clone(), message)
                .help(format!("write `{{{name}}}` for any one segment"))
        });
    let folded = endpoint.any.iter().find(|pattern| depends_on_case(pattern)).map(|pattern| {
        let path = pattern.path.as_str();
        let message = format!(
            "`{path}` is matched by case: if the router behind ignores case, `{}` is served and not limited",
            path.to_ascii_lowercase()
        );
        Problem::warning(CASE, rule.at, field.clone(), message)
            .help("write `case: insensitive` beside `match`, or `case: sensitive` if the router tells them apart")
    });
    let folded = folded.filter(|_| rule.case.is_none());
    colon.into_iter().chain(folded).collect()
}

fn is_parameter(word: &str) -> bool {
    let name = word.strip_prefix(':').unwrap_or_default();
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Capital letters outside of parameters and escapes.
fn depends_on_case(pattern: &EndpointPattern) -> bool {
    let capital = |word: &str| {
        let escaped = |at: usize| word.get(at.saturating_sub(2)..at).is_some_and(|before| before.contains('%'));
        !word.starts_with('{') && word.bytes().enumerate().any(|(at, byte)| byte.is_ascii_uppercase() && !escaped(at))
    };
    pattern.path.case == PathCase::Sensitive && pattern.path.as_str().split('/').any(capital)
}
