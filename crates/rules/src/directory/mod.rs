//! What is known of single clients, by the million: their attributes, and the rules that differ for them.
//!
//! A [`Directory`] belongs to one namespace and is made of a large base, packed once, and a small delta of identities
//! that changed since. One changed override therefore costs what the delta costs, not what the base does, and a changed
//! rule costs nothing here: rules are known by their names, which a set resolves when it is
//! [assembled](crate::ruleset::RuleSet::assemble). When the delta has grown, [`compact`](Directory::compact) folds it
//! into a new base, wherever there is time for it.
//!
//! Of several overrides of one rule that hold for one client at once, the one that began last counts, and among those
//! that began together the one that was entered first.

mod base;
mod builder;
mod delta;
mod identity;
mod names;
mod overriding;
mod texts;

use std::fmt;
use std::sync::Arc;

use tollgate_core::{Digest, Secret};

pub use self::builder::DirectoryBuilder;
pub use self::identity::canonical_client_key;
pub use self::overriding::ActiveOverride;

use self::base::Base;
use self::delta::Delta;
pub(crate) use self::identity::Identity;
use self::names::NameTable;
pub(crate) use self::overriding::PackedOverride;
use self::texts::{AttributePair, Texts};
use crate::normalize::Normalize;
use crate::spec::{ClientSpec, OverrideSpec};

/// Clients and overrides of one namespace. Cheap to clone; what was cloned never changes.
#[derive(Clone)]
pub struct Directory {
    base: Arc<Base>,
    delta: Arc<Delta>,
}

/// Everything that now holds of one identity, in place of whatever did. Nothing at all: it is forgotten.
///
/// Addresses of one IPv6 network are one identity, however many client keys name it: they are to be told together, or
/// kept under their [one spelling](canonical_client_key) from the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryRecord {
    /// Who. What the client and the overrides themselves say about that is not looked at.
    pub client_key: String,
    /// What is known of it.
    pub client: Option<ClientSpec>,
    /// Its overrides.
    pub overrides: Vec<OverrideSpec>,
}

impl Directory {
    /// A directory to be filled. `secret` and `ipv6_prefix` are those of the rules it will serve: identities are kept as
    /// digests only.
    pub fn builder(secret: Secret, ipv6_prefix: u8) -> DirectoryBuilder {
        DirectoryBuilder::new(secret, ipv6_prefix)
    }

    /// The same directory, but for those whom `known` is about. The work follows the delta, not the base.
    #[must_use]
    pub fn with(&self, known: &[DirectoryRecord]) -> Directory {
        let mut delta = Delta::clone(&self.delta);
        known.iter().for_each(|known| delta.replace(&self.base, known));
        Directory { base: self.base.clone(), delta: Arc::new(delta) }
    }

    /// The same directory with everything in its base. The work follows the base.
    #[must_use]
    pub fn compact(&self) -> Directory {
        if self.delta.is_empty() {
            return self.clone();
        }
        let mut builder = Directory::builder(self.base.secret, self.base.ipv6_prefix);
        builder.normalize(self.base.form);
        builder.expect(self.kinds());
        let unchanged = self.base.entries().filter(|(digest, _)| !self.delta.contains(*digest));
        for (digest, entry) in unchanged.chain(self.delta.entries(&self.base)) {
            builder.take_over(self, digest, entry);
        }
        builder.finish()
    }

    /// How many identities the delta has.
    pub fn delta_len(&self) -> usize {
        self.delta.len()
    }

    /// How many clients have attributes.
    pub fn clients(&self) -> usize {
        self.base.clients.saturating_add_signed(self.delta.clients as isize)
    }

    /// How many overrides there are.
    pub fn overrides(&self) -> usize {
        self.base.overrides().saturating_add_signed(self.delta.overrides as isize)
    }

    /// What the base takes in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.base.bytes()
    }

    /// Whether identities are digested here as they are there.
    pub(crate) fn suits(&self, secret: Secret, ipv6_prefix: u8, form: Normalize) -> bool {
        self.base.secret == secret && self.base.ipv6_prefix == ipv6_prefix && self.base.form == form
    }

    /// What is known of an identity.
    #[inline]
    pub(crate) fn find(&self, digest: Digest) -> Option<DirectoryEntry<'_>> {
        if !self.delta.is_empty()
            && let changed @ Some(_) = self.delta.find(&self.base, digest)
        {
            return changed;
        }
        self.base.find(digest).map(|place| self.base.entry(place))
    }

    /// The number of a rule, if any override names it.
    pub(crate) fn rule_number(&self, name: &str) -> Option<u32> {
        let base = &self.base.rules;
        base.find(name).or_else(|| Some(base.len() as u32 + self.delta.rules.find(name)?))
    }

    /// The names of all attributes, in the order of their numbers.
    pub(crate) fn attribute_names(&self) -> impl Iterator<Item = &str> {
        self.base.attributes.iter().chain(self.delta.attributes.iter())
    }

    /// Kinds of identities that may have an entry: others need not be looked up.
    pub(crate) fn kinds(&self) -> u8 {
        self.base.kinds | self.delta.kinds
    }

    /// Whether some override may begin or end.
    pub(crate) fn is_dated(&self) -> bool {
        self.base.dated || self.delta.dated
    }

    /// Every value that may be somebody's tier; perhaps more than once, perhaps no longer.
    pub(crate) fn tiers(&self) -> impl Iterator<Item = &str> {
        self.base.tiers().chain(self.delta.tiers())
    }

    /// How many overrides the rule with that number has.
    pub(crate) fn overrides_of(&self, rule: u32) -> usize {
        let base = self.base.counts.get(rule as usize).copied().unwrap_or(0);
        usize::try_from(i64::from(base) + self.delta.count(rule)).unwrap_or(0)
    }

    pub(crate) fn attribute(&self, number: u16) -> Option<&str> {
        let own = |number: u32| self.delta.attributes.get(number.checked_sub(self.base.attributes.len() as u32)?);
        self.base.attributes.get(number.into()).or_else(|| own(number.into()))
    }

    fn rule(&self, number: u32) -> Option<&str> {
        let own = |number: u32| self.delta.rules.get(number.checked_sub(self.base.rules.len() as u32)?);
        self.base.rules.get(number).or_else(|| own(number))
    }
}

impl fmt::Debug for Directory {
    /// Figures only: nobody wants to read a million clients, and nobody should.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Directory");
        shown.field("clients", &self.clients()).field("overrides", &self.overrides());
        shown.field("delta", &self.delta_len()).finish_non_exhaustive()
    }
}

/// What is known of one identity.
#[derive(Clone, Copy)]
pub(crate) struct DirectoryEntry<'a> {
    /// Attributes, where they are packed.
    pairs: &'a [AttributePair],
    texts: &'a Texts,
    /// Attributes, where they are not.
    loose: &'a [(u16, Box<str>)],
    /// Overrides, those that begin last first.
    pub(crate) overrides: &'a [PackedOverride],
}

impl<'a> DirectoryEntry<'a> {
    /// The numbers of attributes, and their values.
    #[inline]
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (u16, &'a str)> + use<'a> {
        let texts = self.texts;
        let packed = self.pairs.iter().map(move |pair| (pair.name, texts.get(pair.value)));
        packed.chain(self.loose.iter().map(|(name, value)| (*name, &**value)))
    }
}

/// The number of `tier` in every directory.
const TIER: u16 = 0;

/// The names that every directory begins with.
fn first_names() -> NameTable {
    let mut names = NameTable::default();
    names.intern("tier");
    names
}

/// Everything that is known of a client, by name.
fn attributes_of(client: &ClientSpec) -> impl Iterator<Item = (&str, &str)> {
    let own = [("tier", &client.tier), ("org", &client.org)].into_iter();
    let own = own.filter_map(|(name, value)| Some((name, value.as_deref()?)));
    own.chain(client.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

#[cfg(test)]
mod tests;
