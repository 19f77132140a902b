//! The directories of a namespace, bound to its attributes and rules.

use std::collections::HashSet;

use smallvec::SmallVec;
use tollgate_core::{Secret, Time};
use tollgate_rules::Normalize;
use tollgate_rules::spec::OverrideSpec;

use super::attributes::{AttrId, Attributes};
use super::rule::Rule;
use super::rule_numbers::{RuleNumbers, UNKNOWN};
use crate::directory::{Directory, PackedOverride};

/// Directories in order of precedence; that of the file comes first.
#[derive(Debug, Default)]
pub(super) struct BoundDirectories {
    pub(super) all: Vec<BoundDirectory>,
    /// Kinds of identities with an entry; others need not be hashed.
    pub(super) kinds: u8,
}

/// A directory with the attribute numbers of its namespace.
#[derive(Debug)]
pub(super) struct BoundDirectory {
    pub(super) directory: Directory,
    /// The namespace's number of each attribute of the directory; `None` if no rule uses it.
    pub(super) attributes: Vec<Option<AttrId>>,
}

impl BoundDirectories {
    /// Binds the directories that have entries.
    pub(super) fn new(directories: impl Iterator<Item = Directory>, attributes: &Attributes) -> BoundDirectories {
        let bound = |directory: Directory| {
            let attributes = directory.attribute_names().map(|name| attributes.find(name)).collect();
            BoundDirectory { directory, attributes }
        };
        let all: Vec<BoundDirectory> = directories.filter(|directory| directory.kinds() != 0).map(bound).collect();
        let kinds = all.iter().fold(0, |kinds, bound| kinds | bound.directory.kinds());
        BoundDirectories { all, kinds }
    }

    /// Sets the numbers of each rule in the directories.
    pub(super) fn number(&self, rules: &mut [Rule]) {
        let origins = rules.iter().filter_map(|rule| rule.spec.plan.as_ref());
        let mut in_plans: HashSet<String> = origins.map(|origin| origin.name.clone()).collect();
        if !in_plans.is_empty() {
            rules.iter().for_each(|rule| _ = in_plans.remove(&rule.name));
        }
        for rule in rules {
            let number = |bound: &BoundDirectory, name: &str| bound.directory.rule_number(name).unwrap_or(UNKNOWN);
            let local = rule.spec.plan.as_ref().map(|origin| &origin.name).filter(|name| in_plans.contains(*name));
            let numbers = |bound: &BoundDirectory| RuleNumbers {
                name: number(bound, &rule.name),
                in_plans: local.map_or(UNKNOWN, |name| number(bound, name)),
                every: number(bound, OverrideSpec::EVERY_RULE),
            };
            rule.numbers = self.all.iter().map(numbers).collect();
        }
    }

    pub(super) fn suit(&self, secret: Secret, ipv6_prefix: u8, form: Normalize) -> bool {
        self.all.iter().all(|bound| bound.directory.suits(secret, ipv6_prefix, form))
    }

    pub(super) fn are_dated(&self) -> bool {
        self.all.iter().any(|bound| bound.directory.is_dated())
    }

    pub(super) fn tiers(&self) -> impl Iterator<Item = &str> {
        self.all.iter().flat_map(|bound| bound.directory.tiers())
    }

    /// Number of overrides of a rule.
    pub(super) fn overrides_of(&self, rule: &Rule) -> usize {
        let numbered = self.all.iter().zip(&rule.numbers);
        let count = |bound: &BoundDirectory, number: u32| bound.directory.overrides_of(number);
        numbered.map(|(bound, numbers)| count(bound, numbers.name) + count(bound, numbers.in_plans)).sum()
    }
}

/// The overrides and grants of all identities of one request, the most specific identity first.
#[derive(Debug, Default)]
pub(super) struct RequestOverrides<'a> {
    found: SmallVec<[FoundOverrides<'a>; 4]>,
}

/// The overrides and grants of one identity in one directory.
#[derive(Debug)]
struct FoundOverrides<'a> {
    directory: u32,
    /// The kind of the identity, as a bit.
    kind: u8,
    all: &'a [PackedOverride],
}

/// Which grants count.
#[derive(Clone, Copy, Debug)]
pub(super) struct GrantTerms {
    /// Kinds of identities, as bits.
    pub(super) kinds: u8,
    /// The start of the period.
    pub(super) start: Time,
    pub(super) wall: Time,
}

impl<'a> RequestOverrides<'a> {
    pub(super) fn add(&mut self, directory: usize, kind: u8, all: &'a [PackedOverride]) {
        if !all.is_empty() {
            self.found.push(FoundOverrides { directory: directory as u32, kind, all });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The override of `rule` that is in force at `wall`.
    #[inline]
    pub(super) fn of(&self, rule: &Rule, wall: Time) -> Option<&'a PackedOverride> {
        self.found
            .iter()
            .find_map(|FoundOverrides { directory, all, .. }| rule.numbers.get(*directory as usize)?.find(all, wall))
    }

    /// Units of the grants that count for `rule`.
    pub(super) fn granted(&self, rule: &Rule, GrantTerms { kinds, start, wall }: GrantTerms) -> u64 {
        let of_kinds = self.found.iter().filter(|found| found.kind & kinds != 0);
        let units = of_kinds.flat_map(|FoundOverrides { directory, all, .. }| {
            let numbers = rule.numbers.get(*directory as usize).copied();
            let own = all.iter().filter(move |other| numbers.is_some_and(|numbers| numbers.are_named_by(other)));
            own.filter_map(move |other| other.granted(start, wall))
        });
        units.fold(0, u64::saturating_add)
    }
}
