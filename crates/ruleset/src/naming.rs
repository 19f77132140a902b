//! Generates names for rules without one: `free-post-api-1s`, from tier, method, path and window.
//!
//! These names are for people. Buckets are identified by a digest of the rule, [`GeneratedName::identity`], so a rule
//! keeps its usage if its name changes because another rule got a similar one. Rules that would have the same name get
//! a part of their digest, so that no name moves to another rule when the order of the file changes.

use std::collections::{HashMap, HashSet};

use tollgate_core::{KeyHasher, Secret};
use tollgate_rules::check::RULE_NAME_MAX;
use tollgate_rules::duration;
use tollgate_rules::endpoint::EndpointMatcher;
use tollgate_rules::key::KeyBy;
use tollgate_rules::pattern::Matcher;
use tollgate_rules::spec::{LimitAlgorithm, LimitSpec, RuleFile, RuleSpec};

use super::defaults::Defaults;

/// Longest name before a digest is added to it.
const BASE_MAX: usize = RULE_NAME_MAX - 17;

/// Names of a rule without its own.
pub(super) struct GeneratedName {
    /// For people.
    pub(super) name: String,
    /// For buckets.
    pub(super) identity: String,
}

/// Names for the rules of a file without one, by index.
pub(super) fn generate(file: &RuleFile) -> HashMap<usize, GeneratedName> {
    let nameless = file.rules.iter().enumerate().filter(|(_, spec)| spec.name.is_none());
    let bases: Vec<(usize, String, u64)> = nameless
        .map(|(index, spec)| {
            let key_by = spec.key_by.clone().unwrap_or_else(|| Defaults::of(file).key());
            (index, base(spec, &key_by), digest(file, spec, &key_by))
        })
        .collect();
    if bases.is_empty() {
        return HashMap::new();
    }
    let given: HashSet<String> =
        file.rules.iter().filter_map(|spec| spec.name.as_deref()).map(str::to_ascii_lowercase).collect();
    let mut digests: HashMap<String, HashSet<u64>> = HashMap::new();
    for (_, base, digest) in &bases {
        for name in spellings(base, *digest) {
            digests.entry(name).or_default().insert(*digest);
        }
    }
    let is_free = |name: &String| !given.contains(name) && digests.get(name).is_none_or(|same| same.len() == 1);
    let names = bases.into_iter().map(|(index, base, digest)| {
        let identity = format!("rule-{digest:016x}");
        let name = spellings(&base, digest).into_iter().find(is_free).unwrap_or_else(|| identity.clone());
        (index, GeneratedName { name, identity })
    });
    names.collect()
}

/// The generated names of a file.
pub fn generated_names(file: &RuleFile) -> impl Iterator<Item = String> {
    generate(file).into_values().map(|generated| generated.name)
}

/// For every rule of a file, the name that identifies its buckets: its own, or one that depends only on the rule.
pub fn stable_names(file: &RuleFile) -> Vec<String> {
    let mut generated = generate(file);
    let name = |(index, spec): (usize, &RuleSpec)| match &spec.name {
        Some(name) => name.clone(),
        None => generated.remove(&index).map(|names| names.identity).unwrap_or_default(),
    };
    file.rules.iter().enumerate().map(name).collect()
}

fn spellings(base: &str, digest: u64) -> [String; 3] {
    [base.to_owned(), format!("{base}-{:04x}", digest >> 48), format!("{base}-{digest:016x}")]
}

/// A digest of match, key, algorithm and window. It does not depend on the order of the file or on the numbers.
fn digest(file: &RuleFile, spec: &RuleSpec, key_by: &KeyBy) -> u64 {
    let mut hasher = KeyHasher::new(Secret::new([0; 16]));
    let mut matches: Vec<String> = Vec::new();
    for (name, matcher) in &spec.matches.attributes {
        matches.extend(matcher.any.iter().map(|pattern| format!("{name}={pattern}")));
        matches.extend(matcher.none.iter().map(|pattern| format!("{name}!{pattern}")));
    }
    if let Some(endpoint) = &spec.matches.endpoint {
        matches.extend(endpoint.any.iter().map(|pattern| format!("endpoint={pattern}")));
        matches.extend(endpoint.none.iter().map(|pattern| format!("endpoint!{pattern}")));
    }
    matches.sort_unstable();
    hasher.part(file.namespace.as_bytes());
    hasher.word(matches.len() as u64);
    matches.iter().for_each(|text| hasher.part(text.as_bytes()));
    hasher.part(key_by.to_string().as_bytes());
    if let Some(limit) = &spec.limit {
        hasher.part(limit.algorithm.name().as_bytes());
        hasher.word(u64::from(limit.is_queue()));
        hasher.word(limit.window_ns);
    }
    let [bits, _] = hasher.finish().0;
    bits
}

/// A description of the rule that is a valid name.
fn base(spec: &RuleSpec, key_by: &KeyBy) -> String {
    let mut words = String::new();
    let attribute = |name: &str| spec.matches.attributes.iter().find(|(own, _)| own == name);
    if let Some((_, matcher)) = attribute("tier") {
        values(matcher, &mut words);
    }
    if let Some(matcher) = &spec.matches.endpoint {
        endpoints(matcher, &mut words);
    }
    if words.is_empty()
        && let Some((name, matcher)) = spec.matches.attributes.iter().find(|(_, matcher)| !matcher.is_any())
    {
        add(name, &mut words);
        values(matcher, &mut words);
    }
    if words.is_empty() {
        add(&if key_by.is_global() { "global".to_owned() } else { format!("per {key_by}") }, &mut words);
    }
    let window = match &spec.limit {
        _ if spec.unlimited => "unlimited".to_owned(),
        Some(limit) if limit.algorithm == LimitAlgorithm::Concurrency => "slots".to_owned(),
        Some(LimitSpec { quota: Some(quota), .. }) => format!("per-{}", quota.calendar.every().name()),
        limit => limit.as_ref().map_or_else(String::new, |limit| duration::display(limit.window_ns)),
    };
    words.truncate(BASE_MAX.saturating_sub(window.len() + 1));
    let mut name = words.trim_end_matches('-').to_owned();
    add(&window, &mut name);
    name.truncate(BASE_MAX);
    name
}

fn values(matcher: &Matcher, words: &mut String) {
    matcher.any.iter().for_each(|pattern| add(&pattern.to_string(), words));
    matcher.none.iter().for_each(|pattern| add(&format!("not {pattern}"), words));
}

fn endpoints(matcher: &EndpointMatcher, words: &mut String) {
    matcher.any.iter().for_each(|pattern| add(&pattern.to_string(), words));
    matcher.none.iter().for_each(|pattern| add(&format!("not {pattern}"), words));
}

/// Adds a text in lower case, with `-` for characters that names cannot have.
fn add(text: &str, words: &mut String) {
    let mut gap = !words.is_empty();
    for letter in text.chars() {
        if words.len() >= RULE_NAME_MAX {
            return;
        }
        if letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.') {
            if std::mem::take(&mut gap) && !words.is_empty() {
                words.push('-');
            }
            words.push(letter.to_ascii_lowercase());
        } else {
            gap = true;
        }
    }
}
