//! Tells a rules file that was cut off from one that was shortened on purpose.
//!
//! The first half of a rules file is often a valid file: a full disk, a copy that broke off or a template that came out
//! empty must not take limits away. Rules that are meant to go are rarely more than half of all.

use std::collections::BTreeSet;

use crate::pattern::Pattern;
use crate::spec::RuleFile;

/// Why `after` looks like a part of `before`; `None` if it does not, or says that it is meant.
pub fn shrinkage(before: &RuleFile, after: &RuleFile) -> Option<String> {
    let (had, has) = (before.rules.len(), after.rules.len());
    if after.allow_shrink || has >= had || before.namespace != after.namespace {
        return None;
    }
    let help = "if that is meant, write `allow_shrink: true` at the top of the file";
    if (had - has) * 2 > had {
        return Some(format!("{} of {had} rules are gone; {help}", had - has));
    }
    let left = tiers(after);
    let gone = tiers(before).into_iter().find(|tier| !left.contains(tier))?;
    Some(format!("all rules of the tier `{gone}` are gone; {help}"))
}

/// The tiers that rules name in full.
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
    fn a_file_that_was_cut_off_is_told_from_a_shorter_one() {
        let nine = file(&["free", "free", "free", "paid", "paid", "paid", "gold", "gold", "gold"], "");
        let cases: [(&[&str], &str, Option<&str>); 7] = [
            (&["free"], "", Some("8 of 9 rules are gone; if that is meant, write `allow_shrink: true`")),
            (&["free"], "allow_shrink: true", None),
            (&[], "allow_shrink: true", None),
            (&["free", "free", "free", "paid", "paid", "paid"], "", Some("all rules of the tier `gold` are gone")),
            (&["free", "free", "free", "paid", "gold"], "", None),
            (&["a", "b", "c", "d", "e", "f", "g", "h", "i"], "", None),
            (&["free"], "namespace: other", None),
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
}
