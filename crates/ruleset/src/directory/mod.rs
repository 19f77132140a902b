//! Client directory for millions of clients: their attributes, overrides and grants.
//!
//! A [`Directory`] belongs to one namespace. It consists of a large packed base and a small delta of identities that
//! changed since, so a changed override costs as much as the delta, not the base. A changed rule costs nothing here:
//! overrides refer to rules by name, and a set resolves the names when it is
//! [assembled](crate::RuleSet::assemble). [`compact`](Directory::compact) merges a grown delta into a new
//! base.
//!
//! If several overrides of one rule are in force for one client, the one that started last wins, and among those with
//! the same start the one that was added first. Grants of one rule add up.

mod base;
mod builder;
mod delta;
mod identity;
mod overriding;
mod texts;

use std::fmt;
use std::sync::Arc;

use tollgate_core::{Digest, Secret};
use tollgate_rules::Normalize;
use tollgate_rules::spec::{self, ClientSpec, GrantSpec, OverrideSpec};

pub use self::builder::DirectoryBuilder;
pub use self::identity::canonical_client_key;
pub use self::overriding::{ActiveGrant, ActiveOverride};

use self::base::Base;
use self::delta::Delta;
pub(crate) use self::identity::Identity;
pub(crate) use self::overriding::{PackedOverride, RuleNumbers};
use self::texts::NameTable;
use self::texts::{AttributePair, Texts};

/// Clients and overrides of one namespace. Immutable and cheap to clone.
#[derive(Clone)]
pub struct Directory {
    base: Arc<Base>,
    delta: Arc<Delta>,
}

/// The new entry of one identity, which replaces the old one; without client, overrides and grants it removes the
/// identity.
///
/// Addresses of one IPv6 network are one identity, with many client keys: pass them together, or store them under their
/// [canonical client key](canonical_client_key).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryRecord {
    /// The identity; the client keys within `client`, `overrides` and `grants` are ignored.
    pub client_key: String,
    /// Its attributes.
    pub client: Option<ClientSpec>,
    /// Its overrides.
    pub overrides: Vec<OverrideSpec>,
    /// Its grants.
    pub grants: Vec<GrantSpec>,
}

impl Directory {
    /// Builds a directory. `secret` and `ipv6_prefix` must be those of the rules that use it, because only digests of
    /// identities are stored.
    pub fn builder(secret: Secret, ipv6_prefix: u8) -> DirectoryBuilder {
        DirectoryBuilder::new(secret, ipv6_prefix)
    }

    /// The directory with the records in `known` replaced. Costs as much as the delta, not the base.
    #[must_use]
    pub fn with(&self, known: &[DirectoryRecord]) -> Directory {
        let mut delta = Delta::clone(&self.delta);
        known.iter().for_each(|known| delta.replace(&self.base, known));
        Directory { base: self.base.clone(), delta: Arc::new(delta) }
    }

    /// The directory with the delta merged into the base. Costs as much as the base.
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

    /// Number of identities in the delta.
    pub fn delta_len(&self) -> usize {
        self.delta.len()
    }

    /// Number of clients with attributes.
    pub fn clients(&self) -> usize {
        self.base.clients.saturating_add_signed(self.delta.clients as isize)
    }

    /// Number of overrides.
    pub fn overrides(&self) -> usize {
        self.base.overrides().saturating_add_signed(self.delta.overrides as isize)
    }

    /// Number of grants.
    pub fn grants(&self) -> usize {
        self.base.grants.saturating_add_signed(self.delta.grants as isize)
    }

    /// Memory of the base, in bytes.
    pub fn bytes(&self) -> usize {
        self.base.bytes()
    }

    /// Whether digests of identities agree with rules of these settings.
    pub(crate) fn suits(&self, secret: Secret, ipv6_prefix: u8, form: Normalize) -> bool {
        self.base.secret == secret && self.base.ipv6_prefix == ipv6_prefix && self.base.form == form
    }

    /// The entry of an identity.
    #[inline]
    pub(crate) fn find(&self, digest: Digest) -> Option<DirectoryEntry<'_>> {
        if !self.delta.is_empty()
            && let changed @ Some(_) = self.delta.find(&self.base, digest)
        {
            return changed;
        }
        self.base.find(digest).map(|index| self.base.entry(index))
    }

    /// The number of a rule, if any override or grant refers to it.
    pub(crate) fn rule_number(&self, name: &str) -> Option<u32> {
        let base = &self.base.rules;
        base.find(name).or_else(|| Some(base.len() as u32 + self.delta.rules.find(name)?))
    }

    /// The names of all attributes, by number.
    pub(crate) fn attribute_names(&self) -> impl Iterator<Item = &str> {
        self.base.attributes.iter().chain(self.delta.attributes.iter())
    }

    /// Kinds of identities that may have an entry; others need no lookup.
    pub(crate) fn kinds(&self) -> u8 {
        self.base.kinds | self.delta.kinds
    }

    /// Whether some override or grant has a start or an end.
    pub(crate) fn is_dated(&self) -> bool {
        self.base.dated || self.delta.dated
    }

    /// All tiers of clients; may contain duplicates, and tiers that no client has any more.
    pub(crate) fn tiers(&self) -> impl Iterator<Item = &str> {
        self.base.tiers().chain(self.delta.tiers())
    }

    /// Number of overrides of the rule with that number.
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
    /// Counts only: a million clients are unreadable, and private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Directory");
        shown.field("clients", &self.clients()).field("overrides", &self.overrides());
        shown.field("delta", &self.delta_len()).finish_non_exhaustive()
    }
}

/// Attributes and overrides of one identity.
#[derive(Clone, Copy)]
pub(crate) struct DirectoryEntry<'a> {
    /// Attributes in the base.
    pairs: &'a [AttributePair],
    texts: &'a Texts,
    /// Attributes in the delta.
    loose: &'a [(u16, Box<str>)],
    /// Overrides and grants, latest start first.
    pub(crate) overrides: &'a [PackedOverride],
}

impl<'a> DirectoryEntry<'a> {
    /// Numbers and values of the attributes.
    #[inline]
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (u16, &'a str)> + use<'a> {
        let texts = self.texts;
        let packed = self.pairs.iter().map(move |pair| (pair.name, texts.get(pair.value)));
        packed.chain(self.loose.iter().map(|(name, value)| (*name, &**value)))
    }
}

/// Names under which directories keep the calendars of clients. They are [reserved](is_reserved), so no caller chooses
/// when its own quota starts anew.
pub(crate) const CLIENT_TIME_ZONE: &str = "@time_zone";
pub(crate) const CLIENT_ANCHOR: &str = "@anchor";
/// The same for organisations.
pub(crate) const ORG_TIME_ZONE: &str = "@org_time_zone";
pub(crate) const ORG_ANCHOR: &str = "@org_anchor";

/// True for a name that only a directory can set: what a request sends under it is ignored.
#[inline]
pub(crate) fn is_reserved(name: &str) -> bool {
    name.starts_with('@')
}

/// The number of `tier` in every directory.
const TIER: u16 = 0;

/// The first names of every directory.
fn first_names() -> NameTable {
    let mut names = NameTable::default();
    names.intern("tier");
    names
}

/// The name under which an attribute of a client is kept: its calendar under one that requests cannot send.
fn stored_name(name: &str, is_org: bool) -> &str {
    match (name, is_org) {
        (spec::TIME_ZONE, false) => CLIENT_TIME_ZONE,
        (spec::ANCHOR, false) => CLIENT_ANCHOR,
        (spec::TIME_ZONE, true) => ORG_TIME_ZONE,
        (spec::ANCHOR, true) => ORG_ANCHOR,
        (name, _) => name,
    }
}

/// All attributes of a client, by name.
fn attributes_of<'a>(client: &'a ClientSpec, identity: &Identity<'_>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let is_org = matches!(identity, Identity::Org(_));
    let own = [("tier", &client.tier), ("org", &client.org)].into_iter();
    let own = own.filter_map(|(name, value)| Some((name, value.as_deref()?)));
    let others = client.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    own.chain(others.map(move |(name, value)| (stored_name(name, is_org), value)))
}

#[cfg(test)]
mod tests;
