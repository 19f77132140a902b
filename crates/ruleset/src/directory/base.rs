//! The large part of a directory: packed and immutable.
//!
//! Digests are sorted, and their payload is in a parallel list. Digests are uniform, so their first bits give the
//! approximate index: a table holds the first index of every stretch of about four digests, and a lookup reads one
//! number and one stretch. This takes 25 bytes per identity, a third of a hash table with free slots.

use tollgate_core::{Digest, Secret};
use tollgate_rules::{Normalize, spec};

use super::DirectoryEntry;
use super::overriding::PackedOverride;
use super::texts::NameTable;
use super::texts::{Profiles, Texts, ValuePool};

/// Average number of digests in a stretch.
const STRETCH: usize = 4;

/// Attributes and overrides by identity.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) secret: Secret,
    pub(super) ipv6_prefix: u8,
    pub(super) form: Normalize,
    pub(super) attributes: NameTable,
    pub(super) rules: NameTable,
    /// Kinds of identities with an entry.
    pub(super) kinds: u8,
    /// Some override has a start or an end, or some plan a date.
    pub(super) dated: bool,
    /// Numbers of all tiers of clients.
    pub(super) tiers: Vec<u32>,
    /// Number of overrides by rule.
    pub(super) counts: Vec<u32>,
    pub(super) clients: usize,
    pub(super) grants: usize,
    texts: Texts,
    profiles: Profiles,
    starts: Vec<u32>,
    keys: Vec<Digest>,
    slots: Vec<IdentitySlot>,
    /// Overrides and grants.
    overrides: Vec<PackedOverride>,
}

/// Payload of a digest. Its overrides end at the start of the next one's.
#[derive(Clone, Copy, Debug)]
struct IdentitySlot {
    profile: u32,
    overrides: u32,
}

/// Input of a base, in any order.
pub(super) struct BaseParts {
    pub(super) secret: Secret,
    pub(super) ipv6_prefix: u8,
    pub(super) form: Normalize,
    pub(super) attributes: NameTable,
    pub(super) rules: NameTable,
    pub(super) kinds: u8,
    pub(super) pool: ValuePool,
    /// Profiles by digest.
    pub(super) clients: Vec<(Digest, u32)>,
    pub(super) overrides: Vec<(Digest, PackedOverride)>,
}

impl Base {
    pub(super) fn build(parts: BaseParts) -> Base {
        let BaseParts { secret, ipv6_prefix, form, attributes, rules, kinds, pool, mut clients, mut overrides } = parts;
        let ValuePool { mut texts, mut profiles, .. } = pool;
        texts.shrink();
        profiles.shrink();
        clients.sort_by_key(|(digest, _)| *digest); // both sorts are stable: equals stay in the order of insertion
        overrides.sort_by_key(|(digest, change)| (*digest, std::cmp::Reverse(change.from)));
        let mut counts = vec![0; rules.len()];
        for (_, change) in overrides.iter().filter(|(_, change)| !change.is_grant()) {
            if let Some(count) = counts.get_mut(change.rule as usize) {
                *count += 1;
            }
        }
        let mut base = Base {
            secret,
            ipv6_prefix,
            form,
            attributes,
            rules,
            kinds,
            dated: overrides.iter().any(|(_, change)| change.is_dated()) || has_dated_plans(&profiles, &texts),
            tiers: tiers(&profiles),
            counts,
            clients: 0,
            grants: overrides.iter().filter(|(_, change)| change.is_grant()).count(),
            texts,
            profiles,
            starts: Vec::new(),
            keys: Vec::with_capacity(clients.len().max(overrides.len())),
            slots: Vec::with_capacity(clients.len().max(overrides.len()) + 1),
            overrides: Vec::with_capacity(overrides.len()),
        };
        base.merge(&clients, &overrides);
        base.index();
        base
    }

    /// Merges both sorted lists.
    fn merge(&mut self, clients: &[(Digest, u32)], overrides: &[(Digest, PackedOverride)]) {
        let (mut clients, mut overrides) = (clients.iter().peekable(), overrides.iter().peekable());
        loop {
            let next = [clients.peek().map(|(digest, _)| *digest), overrides.peek().map(|(digest, _)| *digest)];
            let Some(digest) = next.into_iter().flatten().min() else { break };
            let mut slot = IdentitySlot { profile: Profiles::EMPTY, overrides: self.overrides.len() as u32 };
            while let Some((_, profile)) = clients.next_if(|(other, _)| *other == digest) {
                slot.profile = *profile;
            }
            self.clients += usize::from(slot.profile != Profiles::EMPTY);
            while let Some((_, change)) = overrides.next_if(|(other, _)| *other == digest) {
                self.overrides.push(*change);
            }
            self.keys.push(digest);
            self.slots.push(slot);
        }
        self.slots.push(IdentitySlot { profile: Profiles::EMPTY, overrides: self.overrides.len() as u32 });
        self.keys.shrink_to_fit();
        self.slots.shrink_to_fit();
    }

    fn index(&mut self) {
        let stretches = self.keys.len().div_ceil(STRETCH);
        let mut starts = Vec::with_capacity(stretches + 1);
        for (index, key) in self.keys.iter().enumerate() {
            while starts.len() <= home(*key, stretches) {
                starts.push(index as u32);
            }
        }
        starts.resize(stretches + 1, self.keys.len() as u32);
        self.starts = starts;
    }

    /// The index of an identity.
    #[inline]
    pub(super) fn find(&self, digest: Digest) -> Option<usize> {
        let stretches = self.starts.len().saturating_sub(1);
        let stretch = home(digest, stretches);
        let (start, end) = (*self.starts.get(stretch)? as usize, *self.starts.get(stretch + 1)? as usize);
        Some(start + self.keys.get(start..end)?.iter().position(|key| *key == digest)?)
    }

    /// The entry of the identity at an index.
    #[inline]
    pub(super) fn entry(&self, index: usize) -> DirectoryEntry<'_> {
        let slot = self.slots.get(index).copied().unwrap_or(IdentitySlot { profile: Profiles::EMPTY, overrides: 0 });
        let end = self.slots.get(index + 1).map_or(slot.overrides, |next| next.overrides);
        DirectoryEntry {
            pairs: self.profiles.get(slot.profile),
            texts: &self.texts,
            loose: &[],
            overrides: self.overrides.get(slot.overrides as usize..end as usize).unwrap_or_default(),
        }
    }

    /// All identities with their entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Digest, DirectoryEntry<'_>)> {
        self.keys.iter().enumerate().map(|(index, digest)| (*digest, self.entry(index)))
    }

    /// An empty entry.
    pub(super) fn nothing(&self) -> DirectoryEntry<'_> {
        DirectoryEntry { pairs: &[], texts: &self.texts, loose: &[], overrides: &[] }
    }

    pub(super) fn tiers(&self) -> impl Iterator<Item = &str> {
        self.tiers.iter().map(|number| self.texts.get(*number))
    }

    pub(super) fn overrides(&self) -> usize {
        self.overrides.len() - self.grants
    }

    pub(super) fn bytes(&self) -> usize {
        let lists = self.starts.capacity() * size_of::<u32>()
            + self.keys.capacity() * size_of::<Digest>()
            + self.slots.capacity() * size_of::<IdentitySlot>()
            + self.overrides.capacity() * size_of::<PackedOverride>();
        lists + self.texts.bytes() + self.profiles.bytes() + self.attributes.bytes() + self.rules.bytes()
    }
}

/// The stretch of a digest; stretches are in digest order.
#[inline]
fn home(digest: Digest, stretches: usize) -> usize {
    let [high, _] = digest.0;
    ((u128::from(high) * stretches as u128) >> 64) as usize
}

fn has_dated_plans(profiles: &Profiles, texts: &Texts) -> bool {
    let plans = profiles.pairs().iter().filter(|pair| pair.name == super::PLAN);
    plans.map(|pair| texts.get(pair.value)).any(spec::is_dated)
}

fn tiers(profiles: &Profiles) -> Vec<u32> {
    let tiers = profiles.pairs().iter().filter(|pair| pair.name == super::TIER).map(|pair| pair.value);
    let mut tiers: Vec<u32> = tiers.collect();
    tiers.sort_unstable();
    tiers.dedup();
    tiers.shrink_to_fit();
    tiers
}
