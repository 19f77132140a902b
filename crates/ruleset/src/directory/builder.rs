//! Builds a directory from single records.

use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::{Digest, Secret};
use tollgate_rules::Normalize;
use tollgate_rules::spec::{ClientSpec, GrantSpec, OverrideSpec};

use super::base::{Base, BaseParts};
use super::identity::Identity;
use super::overriding::PackedOverride;
use super::texts::NameTable;
use super::texts::{AttributePair, Profiles, ValuePool};
use super::{Delta, Directory, DirectoryEntry, attributes_of, first_names};

/// Packs clients, overrides and grants, added in any order, into a [`Directory`].
///
/// Of two clients with one identity the one that was added last wins.
#[derive(Debug)]
pub struct DirectoryBuilder {
    secret: Secret,
    ipv6_prefix: u8,
    form: Normalize,
    attributes: NameTable,
    rules: NameTable,
    kinds: u8,
    pool: ValuePool,
    clients: Vec<(Digest, u32)>,
    overrides: Vec<(Digest, PackedOverride)>,
}

impl DirectoryBuilder {
    pub(super) fn new(secret: Secret, ipv6_prefix: u8) -> DirectoryBuilder {
        DirectoryBuilder {
            secret,
            ipv6_prefix,
            form: Normalize::None,
            attributes: first_names(),
            rules: NameTable::default(),
            kinds: 0,
            pool: ValuePool::default(),
            clients: Vec::new(),
            overrides: Vec::new(),
        }
    }

    /// Sets the Unicode form of identities, that of the rules. Call it before adding any.
    pub fn normalize(&mut self, form: Normalize) {
        self.form = form;
    }

    /// Adds a client.
    pub fn client(&mut self, client: &ClientSpec) {
        let digest = self.digest(&client.client_key);
        let profile = self.profile(attributes_of(client, &Identity::of(&client.client_key)));
        self.clients.push((digest, profile));
    }

    /// Adds an override. One with numbers that no limit can have is ignored, and the rule's own apply.
    pub fn override_of(&mut self, change: &OverrideSpec) {
        let digest = self.digest(&change.client_key);
        let rule = self.rules.intern(&change.rule);
        self.overrides.extend(PackedOverride::of(change, rule).map(|change| (digest, change)));
    }

    /// Adds a grant. One with a number out of range is ignored.
    pub fn grant(&mut self, grant: &GrantSpec) {
        let digest = self.digest(&grant.client_key);
        let rule = self.rules.intern(&grant.rule);
        self.overrides.extend(PackedOverride::grant(grant, rule).map(|grant| (digest, grant)));
    }

    /// Packs all records.
    pub fn finish(self) -> Directory {
        let DirectoryBuilder { secret, ipv6_prefix, form, attributes, rules, kinds, pool, clients, overrides } = self;
        let parts = BaseParts { secret, ipv6_prefix, form, attributes, rules, kinds, pool, clients, overrides };
        Directory { base: Arc::new(Base::build(parts)), delta: Arc::new(Delta::default()) }
    }

    /// Adds the entry of an identity in another directory.
    pub(super) fn take_over(&mut self, from: &Directory, digest: Digest, entry: DirectoryEntry<'_>) {
        let attributes = entry.attributes().filter_map(|(name, value)| Some((from.attribute(name)?, value)));
        let profile = self.profile(attributes);
        if profile != Profiles::EMPTY {
            self.clients.push((digest, profile));
        }
        for change in entry.overrides {
            let rule = self.rules.intern(from.rule(change.rule).unwrap_or_default());
            self.overrides.push((digest, change.under(rule)));
        }
    }

    /// Adds kinds of identities that may have an entry.
    pub(super) fn expect(&mut self, kinds: u8) {
        self.kinds |= kinds;
    }

    fn digest(&mut self, client_key: &str) -> Digest {
        let client_key = self.form.apply(client_key);
        let identity = Identity::of(&client_key);
        self.kinds |= identity.bit();
        identity.digest(self.secret, self.ipv6_prefix)
    }

    fn profile<'a>(&mut self, attributes: impl Iterator<Item = (&'a str, &'a str)>) -> u32 {
        let mut pairs: SmallVec<[AttributePair; 8]> = SmallVec::new();
        for (name, value) in attributes {
            // The 65,537th name has no number, and no rule can refer to it.
            let Ok(name) = u16::try_from(self.attributes.intern(name)) else { continue };
            pairs.push(AttributePair { name, value: self.pool.text(value) });
        }
        self.pool.profile(&pairs)
    }
}
