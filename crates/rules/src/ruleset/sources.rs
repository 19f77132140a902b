//! The directories of a namespace, and what their numbers mean among its rules.

use smallvec::SmallVec;
use tollgate_core::{Secret, Time};

use super::attributes::{AttrId, Attributes};
use super::rule::Rule;
use crate::directory::{Directory, Override};
use crate::normalize::Normalize;

/// Where clients are looked up: what a file says first, then directories in their order.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) all: Vec<Source>,
    /// Kinds of identities that have any entry: others need not be hashed.
    pub(super) kinds: u8,
}

/// One directory, as a set of rules sees it.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) directory: Directory,
    /// The set's number of each attribute of the directory; `None` where no rule asks for it.
    pub(super) attributes: Vec<Option<AttrId>>,
}

/// The number of a rule that a directory does not know.
const UNKNOWN: u32 = u32::MAX;

impl Sources {
    /// Whoever has entries at all, with every attribute that some rule knows.
    pub(super) fn new(directories: impl Iterator<Item = Directory>, attributes: &Attributes) -> Sources {
        let source = |directory: Directory| {
            let attributes = directory.attribute_names().map(|name| attributes.find(name)).collect();
            Source { directory, attributes }
        };
        let all: Vec<Source> = directories.filter(|directory| directory.kinds() != 0).map(source).collect();
        let kinds = all.iter().fold(0, |kinds, source| kinds | source.directory.kinds());
        Sources { all, kinds }
    }

    /// Gives each rule its number in every directory.
    pub(super) fn number(&self, rules: &mut [Rule]) {
        for rule in rules {
            let number = |source: &Source| source.directory.rule_number(&rule.name).unwrap_or(UNKNOWN);
            rule.numbers = self.all.iter().map(number).collect();
        }
    }

    pub(super) fn suit(&self, secret: Secret, ipv6_prefix: u8, form: Normalize) -> bool {
        self.all.iter().all(|source| source.directory.suits(secret, ipv6_prefix, form))
    }

    pub(super) fn are_dated(&self) -> bool {
        self.all.iter().any(|source| source.directory.is_dated())
    }

    pub(super) fn tiers(&self) -> impl Iterator<Item = &str> {
        self.all.iter().flat_map(|source| source.directory.tiers())
    }

    /// Overrides of one rule, whoever they are for.
    pub(super) fn overrides_of(&self, rule: &Rule) -> usize {
        let numbered = self.all.iter().zip(&rule.numbers);
        numbered.map(|(source, number)| source.directory.overrides_of(*number)).sum()
    }
}

/// The overrides of everybody whom one request is about, the most particular identity first.
#[derive(Debug, Default)]
pub(super) struct Exceptions<'a> {
    found: SmallVec<[(usize, &'a [Override]); 4]>,
}

impl<'a> Exceptions<'a> {
    pub(super) fn add(&mut self, source: usize, overrides: &'a [Override]) {
        if !overrides.is_empty() {
            self.found.push((source, overrides));
        }
    }

    /// The override of `rule` that holds at `wall`.
    #[inline]
    pub(super) fn of(&self, rule: &Rule, wall: Time) -> Option<&'a Override> {
        self.found.iter().find_map(|(source, overrides)| {
            let number = rule.numbers.get(*source)?;
            overrides.iter().find(|other| other.rule == *number && other.holds(wall))
        })
    }
}
