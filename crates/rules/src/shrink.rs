//! Detects rules files that were truncated by accident.
//!
//! The first half of a rules file is often a valid file: a full disk, an interrupted copy or an empty template must not
//! remove limits. Entries after the rules are lost first: clients, overrides and file settings. A deliberate change
//! rarely removes more than half of the rules or clients.

use std::collections::BTreeSet;

use crate::pattern::Pattern;
use crate::spec::{RuleFile, RuleSpec};

/// Why `after` looks like a truncated `before`; `None` if it does not, or sets `allow_shrink`.
pub fn shrinkage(before: &RuleFile, after: &RuleFile) -> Option<String> {
    if after.allow_shrink {
        return None;
    }
    let missing =
        lost_setting(before, after).or_else(|| lost_entries(before, after)).or_else(|| lost_tier(before, after));
    missing.map(|missing| format!("{missing}; if that is meant, write `allow_shrink: true` at the top of the file"))
}

/// A lost file setting that changes which requests the rules limit.
fn lost_setting(before: &RuleFile, after: &RuleFile) -> Option<String> {
    let (from, to) = (&before.namespace, &after.namespace);
    let namespace_lost = *to == RuleFile::default().namespace || after.rules.len() < before.rules.len();
    if from != to && namespace_lost {
        return Some(format!("`namespace: {from}` is gone, and the rules would be those of `{to}`"));
    }
    let relied_on = |own: fn(&RuleSpec) -> bool| after.rules.iter().any(|rule| !own(rule));
    if before.key_by.is_some() && after.key_by.is_none() && relied_on(|rule| rule.key_by.is_some() || rule.unlimited) {
        return Some("`key_by` of the whole file is gone, and there are rules without their own".to_owned());
    }
    if before.on_fail.is_some() && after.on_fail.is_none() && relied_on(|rule| rule.on_fail.is_some()) {
        return Some("`on_fail` of the whole file is gone, and there are rules without their own".to_owned());
    }
    None
}

/// A list that lost more than half of its entries.
fn lost_entries(before: &RuleFile, after: &RuleFile) -> Option<String> {
    let lists = [
        ("rules", before.rules.len(), after.rules.len()),
        ("plans", before.plans.len(), after.plans.len()),
        ("clients", before.clients.len(), after.clients.len()),
        ("overrides", before.overrides.len(), after.overrides.len()),
        ("grants", before.grants.len(), after.grants.len()),
    ];
    let shrunk = |(what, had, has): (&str, usize, usize)| {
        let gone = had.saturating_sub(has);
        (gone * 2 > had).then(|| format!("{gone} of {had} {what} are gone"))
    };
    lists.into_iter().find_map(shrunk)
}

/// Lost conditions on all tiers; or on one of them, together with rules.
fn lost_tier(before: &RuleFile, after: &RuleFile) -> Option<String> {
    let (had, left) = (tiers(before), tiers(after));
    if !had.is_empty() && !has_tiers(after) {
        return Some("all conditions on `tier` are gone".to_owned());
    }
    if after.rules.len() >= before.rules.len() {
        return None;
    }
    let gone = had.into_iter().find(|tier| !left.contains(tier))?;
    Some(format!("all rules of the tier `{gone}` are gone"))
}

fn has_tiers(file: &RuleFile) -> bool {
    file.rules.iter().flat_map(|rule| &rule.matches.attributes).any(|(name, _)| name == "tier")
}

/// The tiers in exact conditions of rules.
fn tiers(file: &RuleFile) -> BTreeSet<&str> {
    let attributes = file.rules.iter().flat_map(|rule| &rule.matches.attributes);
    let wanted = attributes.filter(|(name, _)| name == "tier").flat_map(|(_, matcher)| &matcher.any);
    let exact = wanted.filter_map(|pattern| match pattern {
        Pattern::Exact(tier) => Some(tier.as_str()),
        _ => None,
    });
    exact.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(tiers: &[&str], more: &str) -> RuleFile {
        let rule = |(number, tier): (usize, &&str)| {
            format!("  - {{ name: r{number}, match: {{ tier: {tier} }}, limit: {{ requests: 1, window: 1s }} }}\n")
        };
        let rules: String = tiers.iter().enumerate().map(rule).collect();
        let list = if rules.is_empty() { " []".to_owned() } else { format!("\n{rules}") };
        crate::read("rules.yaml", &format!("{more}\nrules:{list}")).unwrap()
    }

    #[test]
    fn truncated_files_are_detected() {
        let nine = file(&["free", "free", "free", "paid", "paid", "paid", "gold", "gold", "gold"], "");
        let cases: [(&[&str], &str, Option<&str>); 7] = [
            (&["free"], "", Some("8 of 9 rules are gone; if that is meant, write `allow_shrink: true`")),
            (&["free"], "allow_shrink: true", None),
            (&[], "allow_shrink: true", None),
            (&["free", "free", "free", "paid", "paid", "paid"], "", Some("all rules of the tier `gold` are gone")),
            (&["free", "free", "free", "paid", "gold"], "", None),
            (&["a", "b", "c", "d", "e", "f", "g", "h", "i"], "", None),
            (&["free"], "namespace: other", Some("`namespace: default` is gone")),
        ];
        for (tiers, more, expected) in cases {
            let found = shrinkage(&nine, &file(tiers, more));
            match expected {
                Some(text) => assert!(found.as_ref().is_some_and(|found| found.contains(text)), "{tiers:?}: {found:?}"),
                None => assert_eq!(found, None, "{tiers:?}"),
            }
        }
        assert_eq!(shrinkage(&file(&["a", "a"], ""), &file(&["a"], "")), None, "half is not more than half");
    }

    /// Sections after the rules are lost if the file ends there.
    #[test]
    fn files_without_their_last_sections_are_detected() {
        let rules = |count: usize, more: &str| {
            let rule = |number| format!("  - {{ name: r{number}, limit: {{ requests: 1, window: 1s }}{more} }}\n");
            format!("rules:\n{}", (0..count).map(rule).collect::<String>())
        };
        let (plain, keyed) = (rules(9, ""), rules(9, ", key_by: user_id, on_fail: deny"));
        let clients = |count: usize| {
            let client = |number| format!("  - {{ client_key: 'key:{number}', tier: gold }}\n");
            format!("clients:\n{}", (0..count).map(client).collect::<String>())
        };
        let overrides = |count: usize| {
            let other = |number| format!("  - {{ client_key: 'key:{number}', rule: r1, requests: 5 }}\n");
            format!("overrides:\n{}", (0..count).map(other).collect::<String>())
        };
        let with = |tail: &str| format!("{plain}{tail}");
        let tiers = rules(9, ", match: { tier: free }");
        let cases = [
            (with("key_by: api_key\n"), plain.clone(), Some("`key_by` of the whole file is gone")),
            (with("key_by: api_key\n"), with("key_by: user_id\n"), None),
            (with("key_by: api_key\n"), keyed.clone(), None),
            (with("on_fail: deny\n"), plain.clone(), Some("`on_fail` of the whole file is gone")),
            (with("on_fail: deny\n"), keyed, None),
            (with("namespace: shop\n"), plain.clone(), Some("`namespace: shop` is gone")),
            (with("namespace: shop\n"), rules(8, "") + "namespace: sho\n", Some("`namespace: shop` is gone")),
            (with("namespace: shop\n"), with("namespace: store\n"), None),
            (with(&clients(20)), with(&clients(1)), Some("19 of 20 clients are gone")),
            (with(&clients(20)), with(&clients(10)), None),
            (with(&overrides(4)), with(&overrides(1)), Some("3 of 4 overrides are gone")),
            (tiers.clone(), plain.clone(), Some("all conditions on `tier` are gone")),
            (tiers.clone(), tiers.replace("free", "paid"), None),
            (tiers, rules(9, ", match: { tier: '*' }"), None),
            (with("key_by: api_key\n"), format!("allow_shrink: true\n{plain}"), None),
        ];
        for (before, after, expected) in cases {
            let read = |text: &str| crate::read("rules.yaml", text).unwrap_or_else(|report| panic!("{report}"));
            let found = shrinkage(&read(&before), &read(&after));
            match expected {
                Some(text) => {
                    let told =
                        found.as_ref().is_some_and(|found| found.contains(text) && found.contains("allow_shrink"));
                    assert!(told, "{after}: {found:?}");
                }
                None => assert_eq!(found, None, "{before}{after}"),
            }
        }
    }
}
