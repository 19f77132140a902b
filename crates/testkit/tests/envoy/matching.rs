//! Which rule a descriptor is for and what it counts by: against a matcher written from the specification.

use proptest::prelude::*;
use tollgate_rules::SourcePosition;
use tollgate_rules::envoy::{Allowance, EnvoyDescriptor, EnvoyDomain, RateLimit, Unit};
use tollgate_testkit::envoy::{Entries, check, probes};

/// Few letters and joints, so that trees and descriptors meet.
const KEYS: &[&str] = &["a", "b", "a_b", "a*", "*"];
const VALUES: &[&str] = &["x", "y", "x_y", "b", "x*", "*y", "*", "x*y", "*_*"];
const ASKED: &[&str] = &["", "x", "y", "xy", "x_y", "b", "x*", "xzy", "*"];

fn descriptor() -> impl Strategy<Value = EnvoyDescriptor> {
    let leaf = (0..KEYS.len(), proptest::option::of(0..VALUES.len()), 0..4u8, any::<bool>());
    let leaf = leaf.prop_map(|(key, value, limit, share)| {
        let allowance = match limit {
            0 => None,
            1 => Some(Allowance::Unlimited),
            _ => Some(Allowance::Limited { requests_per_unit: 3, unit: Unit::ALL[usize::from(limit)] }),
        };
        let rate_limit = allowance.map(|allowance| RateLimit { allowance, name: None, replaces: Vec::new() });
        let (key, value) = (KEYS[key].to_owned(), value.map(|value| VALUES[value].to_owned()));
        let bare = EnvoyDescriptor {
            at: SourcePosition::default(),
            file_name: None,
            key,
            value,
            rate_limit,
            shadow_mode: false,
            quota_mode: false,
            detailed_metric: false,
            value_to_metric: false,
            share_threshold: false,
            metadata: None,
            descriptors: Vec::new(),
        };
        EnvoyDescriptor { share_threshold: share && bare.is_pattern(), ..bare }
    });
    leaf.prop_recursive(3, 40, 6, |inner| {
        (inner.clone(), proptest::collection::vec(inner, 0..6))
            .prop_map(|(node, descriptors)| EnvoyDescriptor { descriptors, ..node })
    })
}

/// As a file would have it: no two siblings alike, every node at a place of its own.
fn tidied(mut level: Vec<EnvoyDescriptor>, line: &mut u32) -> Vec<EnvoyDescriptor> {
    let mut seen = std::collections::HashSet::new();
    level.retain(|node| seen.insert((node.key.clone(), node.value.clone())));
    for node in &mut level {
        *line += 1;
        node.at = SourcePosition { line: *line, column: 1 };
        node.descriptors = tidied(std::mem::take(&mut node.descriptors), line);
    }
    level
}

fn entries() -> impl Strategy<Value = Entries> {
    let entry =
        (0..KEYS.len(), 0..ASKED.len()).prop_map(|(key, value)| (KEYS[key].to_owned(), ASKED[value].to_owned()));
    proptest::collection::vec(entry, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn finds_what_the_specification_finds(
        level in proptest::collection::vec(descriptor(), 0..8),
        asked in proptest::collection::vec(entries(), 1..30),
    ) {
        let domain =
            EnvoyDomain { name: "d".to_owned(), at: SourcePosition::default(), descriptors: tidied(level, &mut 0) };
        let mut descriptors = probes(&domain);
        descriptors.extend(asked);
        check(&domain, &descriptors);
    }
}
