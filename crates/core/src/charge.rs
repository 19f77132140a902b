//! One limit applied to one bucket for one request, and its receipt.

use crate::{Ask, Digest, Effect, Enforcement, KeyHasher, Limit, Outcome, Secret, Sharing, SlotId, Source, Span, Time};

/// One operation of a store on one bucket. It carries its algorithm: a store knows nothing of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The bucket.
    pub bucket: Digest,
    /// The algorithm and its numbers.
    pub limit: Limit,
    /// The operation.
    pub ask: Ask,
    /// Whether a refusal denies the request. Never [`Off`](Enforcement::Off): a limit that is off makes no charge.
    pub enforcement: Enforcement,
    /// Charged even if the request is denied.
    pub count_denied: bool,
    /// Random admission above the limit.
    pub soft: Option<Soft>,
    /// The owner whose share of memory the bucket uses.
    pub owner: Owner,
    /// The identity that the bucket belongs to: a store of several servers keeps the buckets of one identity together.
    /// Zero where the store is not shared.
    pub identity: u32,
    /// How nodes share the bucket.
    pub sharing: Sharing,
}

/// Random admission above the limit: at `limit + k` a request is refused with probability `k / excess`.
///
/// The number is drawn once per bucket and window, from the bucket's digest and the number of the window, so retries
/// draw no new number and every node draws the same. It raises the capacity for that window; the algorithm is
/// unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Soft {
    /// Units above the limit at which everything is refused.
    pub excess: u64,
    /// Makes the draws of one deployment differ from those of another.
    pub seed: u64,
}

impl Soft {
    /// Units above `limit` that `bucket` may use in the window that contains `now`: 0 to `excess − 1`.
    pub fn draw(&self, bucket: Digest, limit: &Limit, now: Time) -> u64 {
        let [a, b] = bucket.0;
        let number = now.before(limit.offset()).nanos() / limit.window().nanos().max(1);
        let drawn = mix(a ^ mix(number ^ mix(b ^ self.seed)));
        ((u128::from(drawn) * u128::from(self.excess)) >> 64) as u64
    }
}

/// A bijection of 64 bits that spreads every input bit over all output bits (the finaliser of SplitMix64).
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The rule whose share of memory a bucket uses. A bounded store gives each owner at most its share; further keys use
/// the owner's overflow bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Identifies the rule and its window, across generations.
    pub id: u32,
    /// Percent of the store's memory that this owner may fill; [`Owner::OVERFLOW`] selects its overflow bucket.
    pub share: u8,
    /// Identifies the namespace of the rule.
    pub namespace: u32,
}

impl Owner {
    /// The share of a charge that goes to the owner's overflow bucket, whatever bucket it names. Receipts of such
    /// charges find the overflow bucket by it.
    pub const OVERFLOW: u8 = u8::MAX;

    /// An owner that may fill all of the store.
    pub const fn new(id: u32) -> Owner {
        Owner { id, share: 100, namespace: 0 }
    }

    /// The same owner, selecting its overflow bucket.
    pub const fn overflowing(self) -> Owner {
        Owner { share: Owner::OVERFLOW, ..self }
    }

    /// True if the overflow bucket is selected.
    pub const fn is_overflowing(self) -> bool {
        self.share == Owner::OVERFLOW
    }
}

impl Charge {
    /// An enforced charge of `cost` units.
    pub const fn new(bucket: Digest, limit: Limit, cost: u64) -> Charge {
        Charge {
            bucket,
            limit,
            ask: Ask::Consume(cost),
            enforcement: Enforcement::Enforce,
            count_denied: false,
            soft: None,
            owner: Owner::new(0),
            identity: 0,
            sharing: Sharing::Exact,
        }
    }

    /// The limit that applies at `now`: raised by the draw of this window if the charge is soft.
    pub fn limit_at(&self, now: Time) -> Limit {
        match self.soft {
            Some(soft) => self.limit.raised(soft.draw(self.bucket, &self.limit, now)),
            None => self.limit,
        }
    }

    /// The effect of this charge, given whether the request passes and whether this bucket admits it. `None`: the
    /// charge only reads.
    pub fn effect(&self, request_passes: bool, bucket_admits: bool) -> Option<Effect> {
        match self.ask {
            Ask::Force(_) => Some(Effect::Force),
            ask if !ask.writes() => None,
            _ if request_passes && bucket_admits => Some(Effect::Charge),
            _ if self.count_denied => Some(Effect::Force),
            _ => Some(Effect::Refuse),
        }
    }

    /// The same charge on its owner's overflow bucket, which holds `factor` times the limit.
    pub fn overflowing(&self, factor: u64) -> Charge {
        // Evenly distributed like any other digest: both share tables, and clustered digests make probing slow.
        let mut hasher = KeyHasher::new(Secret::new(*b"overflow buckets"));
        hasher.word(u64::from(self.owner.id));
        let bucket = hasher.finish();
        let [identity, _] = bucket.0;
        let (limit, owner) = (self.limit.times(factor), self.owner.overflowing());
        Charge { bucket, limit, owner, identity: identity as u32, sharing: Sharing::Exact, ..*self }
    }

    /// True if a refusal denies the request.
    pub fn is_enforced(&self) -> bool {
        self.enforcement == Enforcement::Enforce
    }
}

/// Proof of a charge: it refunds the charge or releases its slot. Not `Clone`, because giving it back consumes it.
#[derive(Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The bucket that the charge named.
    pub bucket: Digest,
    /// The limit it was charged under.
    pub limit: Limit,
    /// The owner of the bucket; [overflowing](Owner::overflowing) if the overflow bucket was charged.
    pub owner: Owner,
    /// The identity of the charge.
    pub identity: u32,
    /// Units recorded.
    pub units: u64,
    /// The [stamp](Outcome::stamp) of the charge.
    pub stamp: Time,
    /// The slot, for concurrency.
    pub slot: Option<SlotId>,
    /// For receipts that leave the process and could come back twice: a number by which the store honours each once.
    pub number: Option<u64>,
}

impl Receipt {
    /// The receipt of `charge` after `outcome`, without a number: for use in this process.
    pub fn of(charge: &Charge, outcome: &Outcome) -> Receipt {
        let slot = if let Ask::Hold(id) = charge.ask { Some(id) } else { None };
        let owner = if outcome.source == Source::Overflow { charge.owner.overflowing() } else { charge.owner };
        let Charge { bucket, limit, identity, .. } = *charge;
        Receipt { bucket, limit, owner, identity, units: outcome.granted, stamp: outcome.stamp, slot, number: None }
    }

    /// How long a store remembers the number of a receipt that came back. Callers must not accept receipts older than
    /// this: units of a long period would then be given back twice.
    pub const HONOURED_WITHIN: Span = Span::from_secs(48 * 3600);

    /// Until when a store that gives it back at `now` remembers its number: until its charge owes nothing, or until the
    /// receipt is too old. A quota for a lifetime owes forever.
    pub fn remembered_until(&self, now: Time) -> Time {
        self.limit.owes_until(self.stamp).min(now.after(Receipt::HONOURED_WITHIN))
    }

    /// The same receipt, to be given back in place of this one; never give back both.
    pub fn handed_on(&self) -> Receipt {
        let Receipt { bucket, limit, owner, identity, units, stamp, slot, number } = *self;
        Receipt { bucket, limit, owner, identity, units, stamp, slot, number }
    }

    /// A charge on the same bucket.
    pub fn charge(&self, ask: Ask) -> Charge {
        Charge { ask, owner: self.owner, identity: self.identity, ..Charge::new(self.bucket, self.limit, 0) }
    }
}
