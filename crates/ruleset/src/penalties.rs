//! The charges of penalties: ordinary limits on buckets of their own, so that every store knows them.
//!
//! | bucket | limit | what is asked |
//! |---|---|---|
//! | denials | `after` in any `within`, as a log | one for every denial; the one that fills it brings the penalty |
//! | penalties | 32 in any memory, as a log | one for every penalty: its number says how long it lasts |
//! | block | one in any `block`, as a GCRA | one, forced, with the length of this penalty; each request reads whether it has passed |
//!
//! The arrival time of the block is the end of the penalty, whatever its length, because it is not clamped: so a request
//! that reads it waits exactly that long.

use tollgate_core::{Ask, Charge, Gcra, KeyHasher, Limit, Owner, Secret, SlidingLog, Span};
use tollgate_rules::spec::PenaltySpec;

use crate::rule::Rule;

/// Makes the buckets of penalties differ from all others.
const BUCKETS: [u8; 16] = *b"penalty buckets.";

/// The charges that a denial may bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PenaltyCharges {
    /// The rule's numbers.
    pub spec: PenaltySpec,
    /// Counts a denial.
    pub denial: Charge,
    /// Counts a penalty.
    pub number: Charge,
    /// Reads whether a penalty is in force.
    pub look: Charge,
}

/// Parts of the digests, and numbers that make owners differ: an overflow bucket is one owner's, and of one algorithm.
const DENIALS: &[u8] = b"denials";
const NUMBER: &[u8] = b"number";
const BLOCK: &[u8] = b"block";
const OWNERS: u32 = 0x9e37_79b9;

impl PenaltyCharges {
    /// Those of the bucket of this charge of the rule.
    pub fn of(rule: &Rule, charge: &Charge) -> Option<PenaltyCharges> {
        let spec = rule.spec.penalty?;
        let log = |amount, span| SlidingLog::new(amount, Span::from_nanos(span)).ok().map(Limit::SlidingLog);
        Some(PenaltyCharges {
            denial: on(charge, (DENIALS, 1), log(spec.after, spec.within_ns)?, Ask::Consume(1)),
            number: on(charge, (NUMBER, 2), log(PenaltySpec::LEVELS_MAX, spec.memory_ns())?, Ask::Consume(1)),
            look: look(rule, charge)?,
            spec,
        })
    }

    /// The buckets of the penalties of a bucket, to be forgotten; the last one refuses while a penalty is in force.
    pub fn buckets(charge: &Charge) -> Option<[Charge; 3]> {
        let log = Limit::SlidingLog(SlidingLog::new(1, Span::SECOND).ok()?);
        let block = Limit::Gcra(Gcra::new(1, Span::SECOND, 1).ok()?.unclamped());
        let parts = [(DENIALS, 1, log), (NUMBER, 2, log), (BLOCK, 3, block)];
        Some(parts.map(|(part, owner, limit)| on(charge, (part, owner), limit, Ask::Peek(1))))
    }

    /// The charge that begins the penalty of this number.
    pub fn block(&self, number: u64) -> Option<Charge> {
        let limit = Gcra::new(1, Span::from_nanos(self.spec.block_of(number)), 1).ok()?.unclamped();
        Some(Charge { limit: Limit::Gcra(limit), ask: Ask::Force(1), ..self.look })
    }
}

/// Reads whether a penalty is in force.
pub(crate) fn look(rule: &Rule, charge: &Charge) -> Option<Charge> {
    let limit = Gcra::new(1, Span::from_nanos(rule.spec.penalty?.block_ns), 1).ok()?.unclamped();
    Some(on(charge, (BLOCK, 3), Limit::Gcra(limit), Ask::Peek(1)))
}

/// A charge on a bucket beside that of another charge.
fn on(charge: &Charge, (part, owner): (&[u8], u32), limit: Limit, ask: Ask) -> Charge {
    let mut hasher = KeyHasher::new(Secret::new(BUCKETS));
    charge.bucket.0.iter().for_each(|word| hasher.word(*word));
    hasher.part(part);
    let owner = Owner { id: charge.owner.id ^ OWNERS.wrapping_mul(owner), ..charge.owner };
    Charge { bucket: hasher.finish(), limit, ask, owner, count_denied: false, soft: None, ..*charge }
}
