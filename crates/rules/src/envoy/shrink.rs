//! Detects truncated files, as [`crate::shrinkage`] does for rules files.
//!
//! The first lines of a file are often a valid file, even the domain alone. A file that no longer exists was removed on
//! purpose, with its limits.

use std::collections::BTreeMap;

use super::{EnvoyDescriptor, EnvoyDomain};

/// Why `after` looks like a truncated `before`; `None` if it does not. Files for which `is_there` is false were
/// removed.
pub fn shrinkage(before: &[EnvoyDomain], after: &[EnvoyDomain], is_there: impl Fn(&str) -> bool) -> Option<String> {
    let left = limits(after);
    let cut = limits(before).into_iter().filter(|((_, file), _)| is_there(file)).find_map(|(place, had)| {
        let gone = had.saturating_sub(left.get(&place).copied().unwrap_or(0));
        (gone * 2 > had).then_some((place, gone, had))
    });
    let ((domain, file), gone, had) = cut?;
    Some(format!(
        "{gone} of {had} limits of the domain `{domain}` are gone from {file}; if that is meant, restart the server, or \
         set `envoy_allow_shrink: true`"
    ))
}

/// Number of limits by domain and file.
fn limits(domains: &[EnvoyDomain]) -> BTreeMap<(&str, &str), usize> {
    let mut counts = BTreeMap::new();
    for domain in domains {
        count(&domain.name, &domain.descriptors, &mut counts);
    }
    counts
}

fn count<'a>(domain: &'a str, level: &'a [EnvoyDescriptor], counts: &mut BTreeMap<(&'a str, &'a str), usize>) {
    for descriptor in level {
        let file = descriptor.file_name.as_deref().unwrap_or_default();
        *counts.entry((domain, file)).or_default() += usize::from(descriptor.rate_limit.is_some());
        count(domain, &descriptor.descriptors, counts);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Duplicates, EnvoyFile, load};
    use super::*;

    /// A file's name and content.
    type Named<'a> = (&'a str, &'a str);

    fn limits_of(domain: &str, count: usize) -> String {
        let limit = |number| format!("  - key: k{number}\n    rate_limit: {{ unit: minute, requests_per_unit: 5 }}\n");
        format!("domain: {domain}\ndescriptors:\n{}", (0..count).map(limit).collect::<String>())
    }

    fn domains(files: &[Named<'_>]) -> Vec<EnvoyDomain> {
        let texts: Vec<EnvoyFile<'_>> = files.iter().map(|(file, text)| EnvoyFile { file, text }).collect();
        load(&texts, Duplicates::Merge).unwrap()
    }

    #[test]
    fn truncated_files_are_detected_and_removed_ones_are_not() {
        let (nine, others) = (limits_of("shop", 9), limits_of("other", 4).replace("key: k", "key: o"));
        let before = [("a.yaml", nine.as_str()), ("b.yaml", others.as_str())];
        let cut_in_name = nine.replace("domain: shop", "domain: sh");
        let cases: [(&[Named<'_>], Option<&str>); 7] = [
            (&before, None),
            (&[("a.yaml", &limits_of("shop", 5)), before[1]], None),
            (
                &[("a.yaml", &limits_of("shop", 4)), before[1]],
                Some("5 of 9 limits of the domain `shop` are gone from a"),
            ),
            (&[("a.yaml", "domain: shop\n"), before[1]], Some("9 of 9 limits of the domain `shop`")),
            (&[("a.yaml", "domain: sh\n"), before[1]], Some("9 of 9 limits of the domain `shop`")),
            (&[("a.yaml", &cut_in_name), before[1]], Some("9 of 9 limits of the domain `shop`")),
            (&[before[0]], None),
        ];
        for (files, expected) in cases {
            let is_there = |name: &str| files.iter().any(|(file, _)| *file == name);
            let found = shrinkage(&domains(&before), &domains(files), is_there);
            match expected {
                Some(text) => assert!(found.as_ref().is_some_and(|found| found.contains(text)), "{files:?}: {found:?}"),
                None => assert_eq!(found, None, "{files:?}"),
            }
        }
    }

    #[test]
    fn limits_are_counted_at_all_levels() {
        let nested = "domain: d\ndescriptors:\n  - key: a\n    descriptors:\n".to_owned()
            + &["b", "c", "e"]
                .map(|key| format!("      - key: {key}\n        rate_limit: {{ unit: day, requests_per_unit: 1 }}\n"))
                .concat();
        let cut = &nested[..nested.find("      - key: c").unwrap()];
        let found = shrinkage(&domains(&[("f", &nested)]), &domains(&[("f", cut)]), |_| true);
        assert!(found.is_some_and(|found| found.starts_with("2 of 3 limits")));
    }
}
