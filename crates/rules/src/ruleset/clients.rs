//! What is known of single clients: their attributes, and the rules that differ for them. Looked up, never scanned.

use smallvec::SmallVec;
use tollgate_core::{Digest, Limit, Secret, Time};

use super::attributes::AttrId;
use super::identity::Identity;
use super::quick::QuickMap;
use super::rule::{Rule, RuleId};

/// Client attributes and overrides of one namespace, by the digest of an identity.
#[derive(Debug, Default)]
pub(super) struct Clients {
    entries: QuickMap<Digest, Entry>,
    attributes: Vec<(AttrId, String)>,
    overrides: Vec<Override>,
    /// Kinds of identities that have any entry: others need not be hashed.
    kinds: u8,
    /// Some client has a tier: without any, nobody's need be looked up.
    tiers: bool,
}

/// Where a client's attributes and overrides stand in the two lists.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    attributes: (u32, u32),
    overrides: (u32, u32),
}

/// One rule's other numbers for one client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Override {
    pub(super) rule: RuleId,
    pub(super) unlimited: bool,
    pub(super) requests: Option<u64>,
    pub(super) burst: Option<u64>,
    pub(super) from: Time,
    pub(super) until: Time,
}

impl Override {
    fn holds(&self, wall: Time) -> bool {
        self.from <= wall && wall < self.until
    }

    /// The rule's limit with this override's numbers. A new rate brings its own capacity along, unless the override or
    /// the rule names a burst.
    pub(super) fn apply(&self, limit: Limit, rule_names_burst: bool) -> Limit {
        let requests = self.requests.unwrap_or_else(|| limit.requests());
        let burst = match (self.burst, self.requests) {
            (Some(burst), _) => burst,
            (None, Some(requests)) if !rule_names_burst => requests,
            (None, _) => limit.capacity(),
        };
        limit.with_requests(requests, burst).unwrap_or(limit)
    }
}

/// What the tables say about one identity.
struct Found<'a> {
    attributes: &'a [(AttrId, String)],
    overrides: &'a [Override],
}

/// What the tables say about the client of one request.
#[derive(Default)]
pub(super) struct Known<'a> {
    found: SmallVec<[Found<'a>; 2]>,
}

impl<'a> Known<'a> {
    pub(super) fn attributes(&self) -> SmallVec<[(AttrId, &'a str); 8]> {
        self.found.iter().flat_map(|found| found.attributes).map(|(id, value)| (*id, value.as_str())).collect()
    }

    pub(super) fn extend(&mut self, other: Known<'a>) {
        self.found.extend(other.found);
    }

    /// The override of `rule` that holds at `wall`; the most particular identity wins.
    #[inline]
    pub(super) fn override_of(&self, rule: RuleId, wall: Time) -> Option<&'a Override> {
        self.found.iter().flat_map(|found| found.overrides).find(|other| other.rule == rule && other.holds(wall))
    }
}

/// Something to enter under an identity.
pub(super) struct Entered<T> {
    digest: Digest,
    kind: u8,
    entry: T,
}

impl<T> Entered<T> {
    pub(super) fn under(client_key: &str, secret: Secret, ipv6_prefix: u8, entry: T) -> Entered<T> {
        let identity = Identity::of(client_key);
        Entered { digest: identity.digest(secret, ipv6_prefix), kind: identity.bit(), entry }
    }
}

impl Clients {
    /// Builds the tables. Overrides of one client stand together, so that one look-up finds them all.
    pub(super) fn build(
        clients: Vec<Entered<Vec<(AttrId, String)>>>,
        mut overrides: Vec<Entered<Override>>,
    ) -> Clients {
        let mut built = Clients::default();
        for client in clients {
            built.kinds |= client.kind;
            let start = built.attributes.len() as u32;
            built.tiers |= client.entry.iter().any(|(id, _)| *id == AttrId::TIER);
            built.attributes.extend(client.entry);
            built.entries.entry(client.digest).or_default().attributes = (start, built.attributes.len() as u32);
        }
        overrides.sort_by_key(|other| other.digest); // stable: the order of the file decides among equals
        for other in overrides {
            built.kinds |= other.kind;
            let place = built.overrides.len() as u32;
            built.overrides.push(other.entry);
            let entry = built.entries.entry(other.digest).or_default();
            if entry.overrides.1 == 0 {
                entry.overrides.0 = place;
            }
            entry.overrides.1 = place + 1;
        }
        built
    }

    /// Nothing is known of anybody.
    pub(super) fn is_empty(&self) -> bool {
        self.kinds == 0
    }

    #[inline]
    pub(super) fn look_up<'a>(
        &'a self,
        identities: &mut dyn Iterator<Item = Identity<'a>>,
        secret: Secret,
        ipv6_prefix: u8,
    ) -> Known<'a> {
        let mut known = Known::default();
        for identity in identities.filter(|identity| identity.bit() & self.kinds != 0) {
            if let Some(entry) = self.entries.get(&identity.digest(secret, ipv6_prefix)) {
                let attributes = slice(&self.attributes, entry.attributes);
                known.found.push(Found { attributes, overrides: slice(&self.overrides, entry.overrides) });
            }
        }
        known
    }

    /// Every value that some client has of one attribute.
    pub(super) fn values_of(&self, wanted: AttrId) -> impl Iterator<Item = &str> {
        self.attributes.iter().filter(move |(id, _)| *id == wanted).map(|(_, value)| value.as_str())
    }

    /// Some client has a tier.
    pub(super) fn has_tiers(&self) -> bool {
        self.tiers
    }

    /// Overrides of one rule, for `explain` and `lint`.
    pub(super) fn overrides_of(&self, rule: &Rule) -> usize {
        self.overrides.iter().filter(|found| found.rule == rule.id).count()
    }
}

fn slice<T>(list: &[T], (start, end): (u32, u32)) -> &[T] {
    list.get(start as usize..end as usize).unwrap_or_default()
}
