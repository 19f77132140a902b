//! The small part of a directory: changes since its base was built.

use std::sync::Arc;

use tollgate_core::Digest;
use tollgate_rules::spec;

use super::base::Base;
use super::identity::Identity;
use super::overriding::PackedOverride;
use super::texts::NameTable;
use super::{DirectoryEntry, DirectoryRecord, PLAN, TIER, attributes_of};
use crate::fast_hash::FastMap;

/// Entries that replace those of the base. Copied for every change, so it must stay small.
#[derive(Clone, Debug, Default)]
pub(super) struct Delta {
    entries: FastMap<Digest, Arc<Replaced>>,
    /// Names that the base does not have; their numbers continue those of the base.
    pub(super) attributes: NameTable,
    pub(super) rules: NameTable,
    /// Kinds of all identities that were ever added.
    pub(super) kinds: u8,
    /// Some override or grant that was ever added has a start or an end, or some plan a date.
    pub(super) dated: bool,
    /// Number of overrides by rule, as a difference to the base.
    counts: FastMap<u32, i64>,
    /// Number of clients, overrides and grants, as a difference to the base.
    pub(super) clients: i64,
    pub(super) overrides: i64,
    pub(super) grants: i64,
}

/// The new entry of an identity; empty if it was removed.
#[derive(Debug)]
struct Replaced {
    attributes: Vec<(u16, Box<str>)>,
    overrides: Vec<PackedOverride>,
}

impl Delta {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn contains(&self, digest: Digest) -> bool {
        self.entries.contains_key(&digest)
    }

    #[inline]
    pub(super) fn find<'a>(&'a self, base: &'a Base, digest: Digest) -> Option<DirectoryEntry<'a>> {
        self.entries.get(&digest).map(|replaced| replaced.entry(base))
    }

    pub(super) fn entries<'a>(&'a self, base: &'a Base) -> impl Iterator<Item = (Digest, DirectoryEntry<'a>)> {
        self.entries.iter().map(|(digest, replaced)| (*digest, replaced.entry(base)))
    }

    /// Number of overrides of a rule, as a difference to the base.
    pub(super) fn count(&self, rule: u32) -> i64 {
        self.counts.get(&rule).copied().unwrap_or(0)
    }

    pub(super) fn tiers(&self) -> impl Iterator<Item = &str> {
        let attributes = self.entries.values().flat_map(|replaced| &replaced.attributes);
        attributes.filter(|(name, _)| *name == TIER).map(|(_, value)| &**value)
    }

    /// Replaces the entry of an identity.
    pub(super) fn replace(&mut self, base: &Base, known: &DirectoryRecord) {
        let client_key = base.form.apply(&known.client_key);
        let identity = Identity::of(&client_key);
        let digest = identity.digest(base.secret, base.ipv6_prefix);
        let in_base = base.find(digest);
        let before = self.entries.get(&digest).cloned();
        match (&before, in_base) {
            (Some(before), _) => self.count_entry(before.entry(base), -1),
            (None, Some(index)) => self.count_entry(base.entry(index), -1),
            (None, None) => {}
        }
        let replaced = self.read(base, known, &identity);
        self.count_entry(replaced.entry(base), 1);
        match replaced.attributes.is_empty() && replaced.overrides.is_empty() {
            true if in_base.is_none() => {
                self.entries.remove(&digest);
            }
            _ => {
                self.kinds |= identity.bit();
                self.entries.insert(digest, Arc::new(replaced));
            }
        }
    }

    fn read(&mut self, base: &Base, known: &DirectoryRecord, identity: &Identity<'_>) -> Replaced {
        let mut attributes = Vec::new();
        for (name, value) in known.client.iter().flat_map(|client| attributes_of(client, identity)) {
            let number = number(&base.attributes, &mut self.attributes, name);
            self.dated |= number == u32::from(PLAN) && spec::is_dated(value);
            attributes.extend(u16::try_from(number).ok().map(|name| (name, Box::from(value))));
        }
        let mut overrides: Vec<PackedOverride> = Vec::new();
        for change in &known.overrides {
            overrides.extend(PackedOverride::of(change, self.rule_number(base, &change.rule)));
        }
        for grant in &known.grants {
            overrides.extend(PackedOverride::grant(grant, self.rule_number(base, &grant.rule)));
        }
        self.dated |= overrides.iter().any(PackedOverride::is_dated);
        overrides.sort_by_key(|change| std::cmp::Reverse(change.from)); // as in the base
        Replaced { attributes, overrides }
    }

    fn rule_number(&mut self, base: &Base, name: &str) -> u32 {
        number(&base.rules, &mut self.rules, name)
    }

    fn count_entry(&mut self, entry: DirectoryEntry<'_>, times: i64) {
        self.clients += if entry.attributes().next().is_some() { times } else { 0 };
        for change in entry.overrides {
            if change.is_grant() {
                self.grants += times;
                continue;
            }
            self.overrides += times;
            *self.counts.entry(change.rule).or_default() += times;
        }
    }
}

impl Replaced {
    fn entry<'a>(&'a self, base: &'a Base) -> DirectoryEntry<'a> {
        DirectoryEntry { loose: &self.attributes, overrides: &self.overrides, ..base.nothing() }
    }
}

/// The number of a name: that of the base, or one that continues those of the base.
fn number(base: &NameTable, own: &mut NameTable, name: &str) -> u32 {
    base.find(name).unwrap_or_else(|| base.len() as u32 + own.intern(name))
}
