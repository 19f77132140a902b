//! Grants of a request: units that its client has once, in the period of a quota.
//!
//! A grant counts only where the bucket of the rule is that of its client. An organisation's grant under a rule that
//! counts by user would otherwise be given to every one of its users.

use tollgate_core::{Secret, Time};

use super::CompiledNamespace;
use super::attributes::AttrId;
use super::directories::GrantTerms;
use super::facts::RequestFacts;
use super::matching::part_of;
use super::rule::Rule;
use crate::directory::{ActiveGrant, Identity};

impl Rule {
    /// Units granted to the client of the bucket in the period that began at `start`.
    #[inline]
    pub(super) fn granted(&self, facts: &RequestFacts<'_>, start: Time, wall: Time) -> u64 {
        if facts.overrides.is_empty() {
            return 0;
        }
        facts.overrides.granted(self, GrantTerms { kinds: self.identifying_kinds(facts), start, wall })
    }

    /// The grants behind [`granted`](Rule::granted), for display.
    pub(super) fn active_grants(
        &self,
        namespace: &CompiledNamespace,
        facts: &RequestFacts<'_>,
        start: Time,
        wall: Time,
        secret: Secret,
    ) -> Vec<ActiveGrant> {
        let terms = GrantTerms { kinds: self.identifying_kinds(facts), start, wall };
        let held = facts.held_grants(namespace, self, terms, secret);
        held.map(|(identity, grant)| grant.shown_grant(identity.client_key())).collect()
    }

    /// Kinds of identities that the key of the bucket consists of.
    fn identifying_kinds(&self, facts: &RequestFacts<'_>) -> u8 {
        let kind = |id: AttrId| match id {
            AttrId::CLIENT_KEY => facts.sent_or_known(id).map_or(0, |key| Identity::of(key).bit()),
            AttrId::API_KEY => Identity::Key("").bit(),
            AttrId::USER_ID => Identity::User("").bit(),
            AttrId::IP => Identity::Ip("").bit(),
            AttrId::ORG => Identity::Org("").bit(),
            _ => 0,
        };
        let parts = self.key.iter().filter_map(|part| part_of(part, facts));
        parts.fold(0, |kinds, (id, _)| kinds | kind(id))
    }
}
