//! Reads `match` and `key_by`.

use super::field::{FieldPath, FieldValue};
use crate::endpoint::EndpointMatcher;
use crate::key::{KeyBy, attribute_fault, is_attribute};
use crate::path::{EscapedSlash, PathCase, canonical_pattern};
use crate::pattern::{Matcher, Pattern};
use crate::problem::{ParseError, Problems};
use crate::spec::MatchSpec;
use crate::yaml::YamlKind;

/// Longest list of patterns for one attribute.
const PATTERNS_MAX: usize = 10_000;

/// How paths of a rule are read.
#[derive(Clone, Copy)]
pub(crate) struct Spelling {
    pub(crate) escaped_slash: EscapedSlash,
    pub(crate) case: PathCase,
}

/// Reads the map under `match`.
pub(super) fn read_match(value: &FieldValue<'_>, spelling: Spelling, problems: &mut Problems) -> MatchSpec {
    let mut spec = MatchSpec::default();
    let YamlKind::Map(entries) = &value.node.kind else {
        let help = "write `match: { tier: free, endpoint: \"POST /api/*\" }`; a rule for everything has no `match`";
        problems.push(value.mismatch("a map", help));
        return spec;
    };
    for (key, node) in entries {
        let entry = FieldValue { node, path: FieldPath::Field(&value.path, &key.text) };
        if !is_attribute(&key.text) {
            let fault = attribute_fault(&key.text);
            let field = entry.path.to_string();
            problems
                .push(crate::Problem::error("bad-attribute", key.position(), field, fault.message).help(fault.help));
        } else if key.text == "endpoint" {
            spec.endpoint = Some(read_endpoint(&entry, spelling, problems));
        } else {
            spec.attributes.push((key.text.clone(), read_matcher(&entry, &key.text, spelling, problems)));
        }
    }
    spec
}

fn read_endpoint(value: &FieldValue<'_>, spelling: Spelling, problems: &mut Problems) -> EndpointMatcher {
    let mut matcher = EndpointMatcher::default();
    each_text(value, problems, |text| {
        matcher.push(text, spelling.escaped_slash, spelling.case).map_err(|fault| ("bad-endpoint", fault))
    });
    matcher
}

fn read_matcher(value: &FieldValue<'_>, attribute: &str, spelling: Spelling, problems: &mut Problems) -> Matcher {
    let mut matcher = Matcher::default();
    each_text(value, problems, |text| match attribute {
        "ip" => matcher.push_ip(text).map_err(|fault| ("bad-address", fault)),
        "path" => matcher.push_with(text, |text| path_pattern(text, spelling)).map_err(|fault| ("bad-pattern", fault)),
        _ => matcher.push(text).map_err(|fault| ("bad-pattern", fault)),
    });
    matcher
}

/// A text pattern for canonical paths, made canonical itself.
fn path_pattern(text: &str, spelling: Spelling) -> Result<Pattern, ParseError> {
    if !text.starts_with('/') {
        return Pattern::parse(text);
    }
    match canonical_pattern(text, spelling.escaped_slash) {
        Ok(path) => Pattern::parse(&path),
        Err(error) => {
            Err(ParseError::new(error.to_string(), "write the path as requests have it; `*` stands for anything"))
        }
    }
}

fn each_text(
    value: &FieldValue<'_>,
    problems: &mut Problems,
    mut push: impl FnMut(&str) -> Result<(), (&'static str, ParseError)>,
) {
    let items = value.one_or_more();
    if items.is_empty() {
        let help = "name at least one pattern, or leave the attribute out";
        problems.push(value.problem("blank", format!("{} is an empty list", value.path)).help(help));
    }
    if items.len() > PATTERNS_MAX {
        let message = format!("{} has {} patterns", value.path, items.len());
        problems.push(value.problem("too-large", message).help(format!("use at most {PATTERNS_MAX}")));
        return;
    }
    for item in items {
        let Some(text) = item.text(problems) else { continue };
        if let Err((code, fault)) = push(text) {
            problems.push(item.fault(code, fault));
        }
    }
}

/// Reads `key_by`: a text or a list of texts.
pub(super) fn read_key_by(value: &FieldValue<'_>, problems: &mut Problems) -> Option<KeyBy> {
    let key = match &value.node.kind {
        YamlKind::List(_) => {
            let items = value.one_or_more();
            let texts: Vec<&str> = items.iter().filter_map(|item| item.text(problems)).collect();
            if texts.len() < items.len() {
                return None;
            }
            KeyBy::from_parts(texts)
        }
        _ => KeyBy::parse(value.text(problems)?),
    };
    key.map_err(|fault| problems.push(value.fault("bad-key-by", fault))).ok()
}
