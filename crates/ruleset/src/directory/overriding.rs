//! Overrides and grants, packed into 32 bytes each.

use tollgate_core::{Limit, Time};
use tollgate_rules::check;
use tollgate_rules::spec::{GrantSpec, OverrideSpec};

/// An override or a grant in a directory. A directory may hold a million, so absent numbers are sentinel values, not
/// options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedOverride {
    pub(super) from: Time,
    until: Time,
    /// [`GIVEN_NONE`], [`UNLIMITED`], or units per window; of a grant, its units.
    requests: u64,
    /// 0 if not set, [`GRANT`] for a grant.
    burst: u32,
    /// The number of the rule's name in its directory.
    pub(crate) rule: u32,
}

/// What a directory calls a rule, and all rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuleNumbers {
    pub(crate) rule: u32,
    pub(crate) every: u32,
}

impl RuleNumbers {
    /// The number of a rule that a directory does not know.
    pub(crate) const UNKNOWN: u32 = u32::MAX;
}

/// An override that is in force for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveOverride {
    /// Its client.
    pub client_key: String,
    /// Units per window instead of the rule's.
    pub requests: Option<u64>,
    /// Capacity instead of the rule's.
    pub burst: Option<u64>,
    /// It exempts the client.
    pub unlimited: bool,
    /// First instant at which it is in force, if it has a start.
    pub from: Option<Time>,
    /// First instant at which it is no longer in force, if it has an end.
    pub until: Option<Time>,
}

const GIVEN_NONE: u64 = u64::MAX;
const UNLIMITED: u64 = u64::MAX - 1;
/// No burst is as large.
const GRANT: u32 = u32::MAX;

/// A grant that counts for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveGrant {
    /// Its client.
    pub client_key: String,
    /// Its units.
    pub units: u64,
    /// First instant at which it counts.
    pub from: Time,
    /// First instant at which it no longer counts, if it ends before its period.
    pub until: Option<Time>,
}

impl PackedOverride {
    /// Packs an override of the rule with that number. `None` if no limit can have its numbers: such an override must
    /// not lift the limit.
    pub(super) fn of(spec: &OverrideSpec, rule: u32) -> Option<PackedOverride> {
        let burst = spec.burst.unwrap_or(0);
        if spec.requests.is_some_and(|requests| requests > check::REQUESTS_MAX) || burst > check::BURST_MAX {
            return None;
        }
        Some(PackedOverride {
            from: Time::from_nanos(spec.valid_from_ns.unwrap_or(0)),
            until: Time::from_nanos(spec.valid_until_ns.unwrap_or(u64::MAX)),
            requests: if spec.unlimited { UNLIMITED } else { spec.requests.unwrap_or(GIVEN_NONE) },
            burst: u32::try_from(burst).ok()?,
            rule,
        })
    }

    /// Packs a grant. `None` if its numbers are out of range.
    pub(super) fn grant(spec: &GrantSpec, rule: u32) -> Option<PackedOverride> {
        (spec.amount <= check::REQUESTS_MAX).then(|| PackedOverride {
            from: Time::from_nanos(spec.valid_from_ns),
            until: Time::from_nanos(spec.valid_until_ns.unwrap_or(u64::MAX)),
            requests: spec.amount,
            burst: GRANT,
            rule,
        })
    }

    pub(super) fn is_grant(&self) -> bool {
        self.burst == GRANT
    }

    /// The units of a grant that counts at `wall`, in the period that began at `start`; none of an override.
    pub(crate) fn granted(&self, start: Time, wall: Time) -> Option<u64> {
        let counts = self.is_grant() && start <= self.from && self.from <= wall && wall < self.until;
        counts.then_some(self.requests)
    }

    /// The grant for display, with its client.
    pub(crate) fn shown_grant(&self, client_key: String) -> ActiveGrant {
        let until = Some(self.until).filter(|until| *until < Time::from_nanos(u64::MAX));
        ActiveGrant { client_key, units: self.requests, from: self.from, until }
    }

    /// The override in another directory, in which the rule has another number.
    pub(super) fn under(self, rule: u32) -> PackedOverride {
        PackedOverride { rule, ..self }
    }

    pub(super) fn is_dated(&self) -> bool {
        self.from > Time::ZERO || self.until < Time::from_nanos(u64::MAX)
    }

    /// The override for display, with its client.
    pub(crate) fn shown(&self, client_key: String) -> ActiveOverride {
        ActiveOverride {
            client_key,
            requests: Some(self.requests).filter(|requests| *requests < UNLIMITED),
            burst: Some(u64::from(self.burst)).filter(|burst| *burst > 0),
            unlimited: self.is_unlimited(),
            from: Some(self.from).filter(|from| *from > Time::ZERO),
            until: Some(self.until).filter(|until| *until < Time::from_nanos(u64::MAX)),
        }
    }

    /// Of the overrides of one identity, the one of a rule that is in force: of the rule itself, else of every rule.
    #[inline]
    pub(crate) fn in_force(all: &[PackedOverride], numbers: RuleNumbers, wall: Time) -> Option<&PackedOverride> {
        let of = |rule: u32| all.iter().find(move |other| other.rule == rule && other.holds(wall));
        of(numbers.rule).or_else(|| of(numbers.every).filter(|_| numbers.every != RuleNumbers::UNKNOWN))
    }

    /// Whether it is an override that is in force.
    #[inline]
    pub(crate) fn holds(&self, wall: Time) -> bool {
        self.from <= wall && wall < self.until && !self.is_grant()
    }

    /// Exempts the client from the rule.
    #[inline]
    pub(crate) fn is_unlimited(&self) -> bool {
        self.requests == UNLIMITED
    }

    /// The rule's limit with the numbers of this override. A new rate also sets the capacity, unless the override or
    /// the rule sets a burst. Invalid numbers leave the rule's limit unchanged.
    pub(crate) fn apply(&self, limit: Limit, rule_names_burst: bool) -> Limit {
        let given = Some(self.requests).filter(|requests| *requests < UNLIMITED);
        let requests = given.unwrap_or_else(|| limit.requests());
        let burst = match (self.burst, given) {
            (0, Some(requests)) if !rule_names_burst => requests,
            (0, _) => limit.capacity(),
            (burst, _) => u64::from(burst),
        };
        limit.with_requests(requests, burst).unwrap_or(limit)
    }
}
