//! The decision about a request: the verdict, what decided, and the ruling of every rule.

use smallvec::SmallVec;
use tollgate_core::{Outcome, Source, Span, Time, Wait};
use tollgate_ruleset::{RequestError, Rule, RuleId, RuleSet};

use crate::{Generation, Pinned};

/// The decision about one request, or about several that were decided together.
#[must_use]
#[derive(Debug)]
pub struct Decision {
    /// Whether the request may pass.
    pub verdict: Verdict,
    /// What decided.
    pub decided_by: DecidedBy,
    /// The store's time of the decision.
    pub now: Time,
    /// The wall time of the decision, for `reset_at` and logs.
    pub wall: Time,
    pub(crate) rulings: SmallVec<[Ruling; 4]>,
    pub(crate) deciding: Option<u16>,
    pub(crate) generation: Pinned,
    /// The random number that its id is made of.
    pub(crate) nonce: u64,
}

/// Whether the request may pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may pass, and was charged.
    Allow,
    /// It is denied, and was charged nothing (except by rules that count denied requests).
    Deny,
    /// It is malformed: no rule was evaluated, nothing was charged.
    Invalid(Box<RequestError>),
}

/// What made a decision, or the ruling of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DecidedBy {
    /// The store.
    Store,
    /// A lease: units taken in advance.
    Lease,
    /// This node's copy of a bucket that other nodes charge too.
    Async,
    /// This node's static share of the limit.
    Local,
    /// The rule's overflow bucket: the store had no room for another bucket.
    Overflow,
    /// The failure policy `allow`: the store did not answer.
    Open,
    /// The failure policy `local`: the store did not answer, and this node's share of the limit decided.
    Fallback,
    /// The failure policy `deny`: the store did not answer.
    Closed,
    /// The kill switch: limits are off, and no rule was evaluated.
    Off,
}

impl DecidedBy {
    /// All values, in their order.
    pub const ALL: [DecidedBy; 9] = [
        DecidedBy::Store,
        DecidedBy::Lease,
        DecidedBy::Async,
        DecidedBy::Local,
        DecidedBy::Overflow,
        DecidedBy::Open,
        DecidedBy::Fallback,
        DecidedBy::Closed,
        DecidedBy::Off,
    ];

    /// The name in responses, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            DecidedBy::Store => "store",
            DecidedBy::Lease => "lease",
            DecidedBy::Async => "async",
            DecidedBy::Local => "local",
            DecidedBy::Overflow => "overflow",
            DecidedBy::Open => "open",
            DecidedBy::Fallback => "fallback",
            DecidedBy::Closed => "closed",
            DecidedBy::Off => "off",
        }
    }
}

impl From<Source> for DecidedBy {
    fn from(source: Source) -> DecidedBy {
        match source {
            Source::Bucket => DecidedBy::Store,
            Source::Overflow => DecidedBy::Overflow,
            Source::Lease => DecidedBy::Lease,
            Source::Async => DecidedBy::Async,
            Source::Local => DecidedBy::Local,
        }
    }
}

/// The result of one rule.
#[derive(Clone, Copy, Debug)]
pub struct Ruling {
    /// The rule.
    pub rule: RuleId,
    /// The index of the request among those decided together.
    pub request: u16,
    /// Whether a refusal denies the request: not for shadow rules, nor while all limits are
    /// [shadowed](tollgate_core::Enforcement::Shadow).
    pub enforced: bool,
    /// What decided.
    pub decided_by: DecidedBy,
    /// The outcome of its bucket; `None` if the rule sets no limit for this request, or its bucket was not evaluated.
    pub outcome: Option<Outcome>,
    /// Units per window of the limit that applied: the rule's, an override's or a share.
    pub requests: u64,
    /// The window of that limit; empty if none applied.
    pub window: Span,
    /// Whether a penalty refused, whatever its bucket has.
    pub penalised: bool,
    /// The index of its bucket among those of the decision.
    pub(crate) bucket: Option<u16>,
}

impl Ruling {
    /// The index of its charge among those that the store was asked; `None` if the rule made none.
    pub fn charge(&self) -> Option<usize> {
        self.bucket.map(usize::from)
    }

    /// True if the rule refused.
    pub fn refused(&self) -> bool {
        match self.outcome {
            Some(outcome) => !outcome.allowed,
            None => self.decided_by == DecidedBy::Closed,
        }
    }
}

/// Why no rule decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// There are no rules.
    NoRules,
    /// Rules exist; none applies to this request.
    NoMatch,
    /// Every rule that applies sets no limit for this request.
    Unlimited,
    /// Only shadow rules apply.
    ShadowOnly,
    /// Limits are switched off.
    Off,
}

impl Reason {
    /// A human-readable sentence.
    pub const fn text(self) -> &'static str {
        match self {
            Reason::NoRules => "there are no rules: everything is allowed",
            Reason::NoMatch => "no rule applies to this request",
            Reason::Unlimited => "the rules that apply set no limit for this request",
            Reason::ShadowOnly => "only shadow rules apply to this request",
            Reason::Off => "limits are switched off: everything is allowed",
        }
    }
}

impl Decision {
    /// True if the request may pass.
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }

    /// The generation of rules that decided.
    pub fn generation(&self) -> u64 {
        self.generation.number
    }

    /// The rules that decided.
    pub fn rules(&self) -> &RuleSet {
        &self.generation.rules
    }

    /// The rulings of all rules that applied, in the order of the rules.
    pub fn rulings(&self) -> &[Ruling] {
        &self.rulings
    }

    /// The rule of a ruling.
    pub fn rule(&self, ruling: &Ruling) -> Option<&Rule> {
        let Generation { rules, .. } = &*self.generation;
        rules.rule(ruling.rule)
    }

    /// The deciding ruling: of those that refused, the one with the longest wait; of those that admitted, the one with
    /// the least room left. `None` if no enforced limit applied; [`reason`](Decision::reason) then says why.
    pub fn deciding(&self) -> Option<&Ruling> {
        self.rulings.get(usize::from(self.deciding?))
    }

    /// The place of the deciding ruling among [`rulings`](Decision::rulings).
    pub fn deciding_index(&self) -> Option<usize> {
        self.deciding.map(usize::from)
    }

    /// The deciding ruling for one of the requests decided together.
    pub fn deciding_for(&self, request: u16) -> Option<&Ruling> {
        let own = || self.rulings.iter().filter(move |ruling| ruling.request == request);
        let refused = own().filter(|ruling| ruling.enforced && ruling.refused());
        let longest = refused.rev().max_by_key(|ruling| ruling.outcome.map_or(Wait::Never, |outcome| outcome.wait));
        // Where no enforced rule applies, operators want to see the shadow rule.
        let least = |enforced: bool| {
            let some = own().filter(move |ruling| ruling.enforced == enforced);
            some.filter(|ruling| ruling.outcome.is_some())
                .min_by_key(|ruling| ruling.outcome.map(|seen| seen.remaining))
        };
        longest.or_else(|| least(true)).or_else(|| least(false)).or_else(|| own().next())
    }

    /// The rule that decided, and the outcome of its bucket.
    pub fn deciding_rule(&self) -> Option<(&Rule, Option<&Outcome>)> {
        let ruling = self.deciding()?;
        Some((self.rule(ruling)?, ruling.outcome.as_ref()))
    }

    /// Why no rule decided; `None` if one did.
    pub fn reason(&self) -> Option<Reason> {
        match self.deciding {
            Some(_) => None,
            None if self.decided_by == DecidedBy::Off => Some(Reason::Off),
            None if self.generation.rules.rules().is_empty() => Some(Reason::NoRules),
            None if self.rulings.is_empty() => Some(Reason::NoMatch),
            None if self.rulings.iter().any(|ruling| ruling.enforced) => Some(Reason::Unlimited),
            None => Some(Reason::ShadowOnly),
        }
    }

    /// When the same request would pass, if nothing else happens: a sufficient wait for all rules.
    pub fn retry_after(&self) -> Wait {
        match (&self.verdict, self.deciding()) {
            (Verdict::Deny, Some(Ruling { outcome: Some(outcome), .. })) => outcome.wait,
            (Verdict::Deny, _) => Wait::For(Span::SECOND), // denied by failure policy: the store may be back soon
            (Verdict::Invalid(_), _) => Wait::Never,
            (Verdict::Allow, _) => Wait::None,
        }
    }

    /// Capacity of the deciding rule.
    pub fn limit(&self) -> Option<u64> {
        self.deciding()?.outcome.map(|outcome| outcome.limit)
    }

    /// Room left at the deciding rule.
    pub fn remaining(&self) -> Option<u64> {
        self.deciding()?.outcome.map(|outcome| outcome.remaining)
    }

    /// How long an admitted caller must wait before it proceeds: the longest delay of all queues.
    pub fn delay(&self) -> Span {
        match self.verdict {
            Verdict::Allow => self.enforced().map(|outcome| outcome.delay).max().unwrap_or(Span::ZERO),
            _ => Span::ZERO,
        }
    }

    fn enforced(&self) -> impl Iterator<Item = &Outcome> {
        self.rulings.iter().filter(|ruling| ruling.enforced).filter_map(|ruling| ruling.outcome.as_ref())
    }
}

/// Picks the deciding ruling; the first of equals.
#[inline(always)]
pub(crate) fn deciding(rulings: &[Ruling], allowed: bool) -> Option<u16> {
    let enforced = rulings.iter().enumerate().filter(|(_, ruling)| ruling.enforced);
    let chosen = match allowed {
        true => enforced
            .filter_map(|(place, ruling)| Some((place, ruling.outcome?)))
            .min_by_key(|(_, outcome)| outcome.remaining)
            .map(|(place, _)| place),
        false => enforced
            .filter(|(_, ruling)| ruling.refused() || ruling.outcome.is_some_and(|outcome| outcome.wait > Wait::None))
            .rev() // max_by_key takes the last of equals
            .max_by_key(|(_, ruling)| ruling.outcome.map_or(Wait::Never, |outcome| outcome.wait))
            .map(|(place, _)| place),
    };
    chosen.and_then(|place| u16::try_from(place).ok())
}
