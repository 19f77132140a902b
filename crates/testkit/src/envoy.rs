//! A matcher for files of envoyproxy/ratelimit, written from the specification alone: slow, simple, and without code of
//! the matcher that it tests.

use std::collections::HashMap;

use tollgate_core::{Digest, Request, Time};
use tollgate_rules::envoy::{Allowance, EnvoyDescriptor, EnvoyDomain};
use tollgate_ruleset::{Charges, CompileOptions, RuleSet};

/// The entries of a descriptor.
pub type Entries = Vec<(String, String)>;

/// Keys and values that tell one counter of a rule from another; no value where all values share a counter.
pub type CounterKey = Vec<(String, Option<String>)>;

/// Asks a compiled domain about descriptors, and panics where it does not find what [`find`] finds: another rule, or
/// counters that are one where they should be two, or two where they should be one. Nodes must stand at places of their
/// own.
pub fn check(domain: &EnvoyDomain, descriptors: &[Entries]) {
    let set = RuleSet::assemble_with(&[], std::slice::from_ref(domain), &CompileOptions::reproducible());
    let set = set.unwrap_or_else(|problems| panic!("a domain that was read does not compile: {problems:?}"));
    assert!(set.is_domain(&domain.name));
    let mut buckets: HashMap<Digest, (usize, CounterKey)> = HashMap::new();
    let mut counters: HashMap<(usize, CounterKey), Digest> = HashMap::new();
    for entries in descriptors {
        let entries: Vec<(&str, &str)> = entries.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let request = Request::new().in_namespace(&domain.name).with_custom(&entries);
        let mut charges = Charges::default();
        if set.charges(&request, Time::ZERO, &mut charges).is_err() {
            assert!(entries.len() > 64 || entries.iter().any(|(key, value)| key.len().max(value.len()) > 4096));
            continue;
        }
        let expected = find(domain, &entries);
        let applied = charges.applied.first().and_then(|applied| set.rule(applied.rule));
        let last = expected.as_ref().and_then(|found| found.path.last());
        assert_eq!(applied.map(|rule| rule.spec.at), last.map(|node| node.at), "{entries:?} in {domain:?}");
        let limited = last.and_then(|node| node.rate_limit.as_ref());
        let limited = limited.is_some_and(|limit| limit.allowance != Allowance::Unlimited);
        assert_eq!(charges.charges.len(), usize::from(limited), "{entries:?} in {domain:?}");
        let (Some(charge), Some(found)) = (charges.charges.first(), expected) else { continue };
        let node = std::ptr::from_ref::<EnvoyDescriptor>(found.path[found.path.len() - 1]).addr();
        let counter = (node, found.counter);
        assert_eq!(buckets.entry(charge.bucket).or_insert_with(|| counter.clone()), &counter, "one bucket for two");
        assert_eq!(*counters.entry(counter).or_insert(charge.bucket), charge.bucket, "two buckets for one");
    }
}

/// Descriptors that a tree is about, and some that miss it by a little.
pub fn probes(domain: &EnvoyDomain) -> Vec<Entries> {
    let mut probes = vec![Vec::new()];
    collect(&domain.descriptors, &mut Vec::new(), &mut probes);
    probes
}

/// Most descriptors asked about one tree.
const PROBES_MAX: usize = 400;

fn collect(level: &[EnvoyDescriptor], path: &mut Entries, probes: &mut Vec<Entries>) {
    for node in level {
        let value = node.value.as_deref().unwrap_or("any");
        for (key, value) in
            [(&*node.key, value), (&node.key.replace('*', "x"), &value.replace('*', "")), (&*node.key, "")]
        {
            if probes.len() >= PROBES_MAX {
                return;
            }
            path.push((key.to_owned(), value.to_owned()));
            probes.push(path.clone());
            path.push(("beyond".to_owned(), value.to_owned()));
            probes.push(path.clone());
            path.pop();
            collect(&node.descriptors, path, probes);
            path.pop();
        }
    }
}

/// What a descriptor matches.
#[derive(Clone, Debug, PartialEq)]
pub struct DescriptorMatch<'a> {
    /// The nodes from the first level to the last, one for each entry.
    pub path: Vec<&'a EnvoyDescriptor>,
    /// What tells its counter from others: each entry's key, and its value unless the node shares one counter.
    pub counter: CounterKey,
}

/// The node with a limit that `entries` end at.
pub fn find<'a>(domain: &'a EnvoyDomain, entries: &[(&str, &str)]) -> Option<DescriptorMatch<'a>> {
    let mut level = domain.descriptors.as_slice();
    let mut found = DescriptorMatch { path: Vec::new(), counter: Vec::new() };
    for (key, value) in entries {
        let exact = level.iter().find(|node| node.key == *key && node.value.as_deref() == Some(value));
        let pattern = || level.iter().find(|node| node.is_pattern() && holds(node, key, value));
        let bare = || level.iter().find(|node| node.key == *key && node.value.is_none());
        let node = exact.or_else(pattern).or_else(bare)?;
        found.path.push(node);
        found.counter.push(((*key).to_owned(), (!node.share_threshold).then(|| (*value).to_owned())));
        level = &node.descriptors;
    }
    found.path.last().is_some_and(|node| node.rate_limit.is_some()).then_some(found)
}

fn holds(node: &EnvoyDescriptor, key: &str, value: &str) -> bool {
    star(&node.key, key) && node.value.as_ref().is_none_or(|pattern| star(pattern, value))
}

/// Whether `text` matches `pattern`, where `*` is any text. Tracks which prefixes of the pattern match the text so far.
fn star(pattern: &str, text: &str) -> bool {
    let letters: Vec<char> = pattern.chars().collect();
    let close = |reached: &mut Vec<bool>| {
        for (place, letter) in letters.iter().enumerate() {
            if *letter == '*' && reached[place] {
                reached[place + 1] = true;
            }
        }
    };
    let mut reached = vec![false; letters.len() + 1];
    reached[0] = true;
    close(&mut reached);
    for letter in text.chars() {
        let mut next = vec![false; reached.len()];
        for (place, wanted) in letters.iter().enumerate().filter(|(place, _)| reached[*place]) {
            match *wanted {
                '*' => next[place] = true,
                wanted if wanted == letter => next[place + 1] = true,
                _ => {}
            }
        }
        close(&mut next);
        reached = next;
    }
    reached[letters.len()]
}
