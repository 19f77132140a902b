//! The directories of a namespace, and what their numbers mean among its rules.

use smallvec::SmallVec;
use tollgate_core::{Secret, Time};

use super::attributes::{AttrId, Attributes};
use super::rule::Rule;
use crate::directory::{Directory, PackedOverride};
use crate::normalize::Normalize;

/// Where clients are looked up: what a file says first, then directories in their order.
#[derive(Debug, Default)]
pub(super) struct BoundDirectories {
    pub(super) all: Vec<BoundDirectory>,
    /// Kinds of identities that have any entry: others need not be hashed.
    pub(super) kinds: u8,
}

/// One directory, as a set of rules sees it.
#[derive(Debug)]
pub(super) struct BoundDirectory {
    pub(super) directory: Directory,
    /// The set's number of each attribute of the directory; `None` where no rule asks for it.
    pub(super) attributes: Vec<Option<AttrId>>,
}

/// The number of a rule that a directory does not know.
const UNKNOWN: u32 = u32::MAX;

impl BoundDirectories {
    /// Whoever has entries at all, with every attribute that some rule knows.
    pub(super) fn new(directories: impl Iterator<Item = Directory>, attributes: &Attributes) -> BoundDirectories {
        let bound = |directory: Directory| {
            let attributes = directory.attribute_names().map(|name| attributes.find(name)).collect();
            BoundDirectory { directory, attributes }
        };
        let all: Vec<BoundDirectory> = directories.filter(|directory| directory.kinds() != 0).map(bound).collect();
        let kinds = all.iter().fold(0, |kinds, bound| kinds | bound.directory.kinds());
        BoundDirectories { all, kinds }
    }

    /// Gives each rule its number in every directory.
    pub(super) fn number(&self, rules: &mut [Rule]) {
        for rule in rules {
            let number = |bound: &BoundDirectory| bound.directory.rule_number(&rule.name).unwrap_or(UNKNOWN);
            rule.numbers = self.all.iter().map(number).collect();
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

    /// Overrides of one rule, whoever they are for.
    pub(super) fn overrides_of(&self, rule: &Rule) -> usize {
        let numbered = self.all.iter().zip(&rule.numbers);
        numbered.map(|(bound, number)| bound.directory.overrides_of(*number)).sum()
    }
}

/// The overrides of everybody whom one request is about, the most particular identity first.
#[derive(Debug, Default)]
pub(super) struct RequestOverrides<'a> {
    found: SmallVec<[(usize, &'a [PackedOverride]); 4]>,
}

impl<'a> RequestOverrides<'a> {
    pub(super) fn add(&mut self, directory: usize, overrides: &'a [PackedOverride]) {
        if !overrides.is_empty() {
            self.found.push((directory, overrides));
        }
    }

    /// The override of `rule` that holds at `wall`.
    #[inline]
    pub(super) fn of(&self, rule: &Rule, wall: Time) -> Option<&'a PackedOverride> {
        self.found.iter().find_map(|(directory, overrides)| {
            let number = rule.numbers.get(*directory)?;
            overrides.iter().find(|other| other.rule == *number && other.holds(wall))
        })
    }
}
