//! Encodes a reservation into bytes that leave the process, and decodes them.
//!
//! The server signs the bytes and decodes only what carries its signature, so the decoder trusts them. Every receipt
//! gets a number when it is encoded, by which the store honours it once.

use smallvec::SmallVec;
use tollgate_core::{
    Concurrency, Digest, FixedWindow, Gcra, Limit, Owner, Queue, Quota, Receipt, Request, SlidingCounter, SlidingLog,
    SlotId, Span, Time,
};

use crate::random;
use crate::reservation::{Reservation, Reserved, ReservedCosts};

/// The version of the layout.
const VERSION: u8 = 5;
/// The layout with one charge per bucket and one meter.
const ONE_METER: u8 = 4;
/// The layout before reservations had a number. Receipts of earlier versions are settled for a day after an upgrade.
const WITHOUT_NUMBER: u8 = 3;
/// Flags of a bucket: it holds a slot; it was charged to the static share of the node; its rule is a shadow rule.
const HOLDS: u8 = 1;
const OWN: u8 = 2;
const SHADOW: u8 = 4;
/// The kind of a quota, which has two more numbers than other limits.
const QUOTA: u8 = 6;
/// The kind of a quota with a grant, which follows its other numbers. Quotas without one stay readable for nodes that
/// know no grants.
const GRANTED_QUOTA: u8 = 7;

impl Reservation {
    /// Appends the encoded reservation to `out`. It is settled when the bytes come back.
    pub fn pack(self, out: &mut Vec<u8>) {
        let Reservation { costs: ReservedCosts(costs), entries, local, number, step } = self;
        out.extend([VERSION, u8::from(local), costs.len() as u8]);
        put(out, number.unwrap_or_else(random::unpredictable));
        put(out, step);
        for (meter, amount) in &costs {
            out.push(meter.len() as u8);
            out.extend(meter.bytes());
            put(out, *amount);
        }
        entries.iter().for_each(|entry| pack_entry(entry, out));
    }

    /// Decodes a reservation; `None` if the bytes are malformed.
    pub fn unpack(bytes: &[u8]) -> Option<Reservation> {
        let mut bytes = Bytes(bytes);
        let (version, local) = (bytes.byte()?, bytes.byte()? == 1);
        if version != VERSION {
            return bytes.one_meter(version, local);
        }
        let meters = bytes.byte()?;
        let (number, step) = (Some(bytes.word()?), bytes.word()?);
        let costs = (0..meters).map(|_| bytes.cost()).collect::<Option<_>>()?;
        let mut entries: SmallVec<[Reserved; 4]> = SmallVec::new();
        while !bytes.0.is_empty() {
            entries.push(bytes.reserved()?);
        }
        Some(Reservation { costs: ReservedCosts(costs), entries, local, number, step })
    }

    /// A unique number, once the reservation has been packed; also if no rule charged it.
    pub fn number(&self) -> Option<u64> {
        self.number
    }
}

fn pack_entry(entry: &Reserved, out: &mut Vec<u8>) {
    let Reserved { pieces, prices, own, shadow } = entry;
    let Some(Receipt { bucket: Digest([a, b]), limit, owner, identity, slot, .. }) = pieces.first() else { return };
    let (kind, numbers) = limit_numbers(limit);
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = flag(slot.is_some(), HOLDS) | flag(*own, OWN) | flag(*shadow, SHADOW);
    out.extend([kind, owner.share, flags, prices.len() as u8, pieces.len() as u8]);
    let SlotId(slot) = slot.unwrap_or(SlotId(0));
    let place = u64::from(*identity) << 32 | u64::from(owner.id);
    let words = [*a, *b, place, u64::from(owner.namespace), slot as u64, (slot >> 64) as u64];
    words.into_iter().chain(numbers).for_each(|word| put(out, word));
    for (meter, price) in prices {
        out.push(*meter);
        put(out, *price);
    }
    for Receipt { units, stamp, number, .. } in pieces {
        let number = number.unwrap_or_else(random::unpredictable);
        [*units, stamp.nanos(), number].into_iter().for_each(|word| put(out, word));
    }
}

/// Encodes a limit as a kind and four numbers, or six of a quota, or seven of one with a grant.
fn limit_numbers(limit: &Limit) -> (u8, SmallVec<[u64; 7]>) {
    let (kind, numbers) = match limit {
        Limit::Gcra(g) => (0, [g.requests(), g.period().nanos(), g.burst(), g.max_debt()]),
        Limit::Queue(q) => (1, [q.requests(), q.period().nanos(), q.max_delay().nanos(), 0]),
        Limit::FixedWindow(w) => (2, [w.limit(), w.window().nanos(), w.offset().nanos(), 0]),
        Limit::SlidingLog(l) => (3, [l.limit(), l.window().nanos(), 0, 0]),
        Limit::SlidingCounter(c) => (4, [c.limit(), c.window().nanos(), c.offset().nanos(), 0]),
        Limit::Concurrency(c) => (5, [c.slots(), c.ttl().nanos(), 0, 0]),
        Limit::Quota(q) => {
            let bounds = [q.start(), q.end(), q.next_end()].map(Time::nanos);
            let numbers = [q.amount(), q.overdraft(), q.rollover()];
            let grant = Some(q.grant()).filter(|grant| *grant > 0);
            let kind = if grant.is_some() { GRANTED_QUOTA } else { QUOTA };
            return (kind, numbers.into_iter().chain(bounds).chain(grant).collect());
        }
    };
    (kind, SmallVec::from_slice(&numbers))
}

fn limit_of(kind: u8, [a, b, c, d]: [u64; 4]) -> Option<Limit> {
    let (window, third) = (Span::from_nanos(b), Span::from_nanos(c));
    Some(match kind {
        0 => Limit::Gcra(Gcra::new(a, window, c).ok()?.with_max_debt(d).ok()?),
        1 => Limit::Queue(Queue::new(a, window, third).ok()?),
        2 => Limit::FixedWindow(FixedWindow::new(a, window).ok()?.with_offset(third)),
        3 => Limit::SlidingLog(SlidingLog::new(a, window).ok()?),
        4 => Limit::SlidingCounter(SlidingCounter::new(a, window).ok()?.with_offset(third)),
        5 => Limit::Concurrency(Concurrency::new(a, window).ok()?),
        _ => return None,
    })
}

fn quota_of([amount, overdraft, rollover]: [u64; 3], [start, end, next_end]: [u64; 3]) -> Option<Quota> {
    let time = Time::from_nanos;
    let quota = Quota::new(amount, time(start), time(end), time(next_end)).ok()?;
    Some(quota.with_overdraft(overdraft).with_rollover(rollover))
}

fn put(out: &mut Vec<u8>, word: u64) {
    out.extend(word.to_le_bytes());
}

/// The bytes left to decode.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn limit(&mut self, kind: u8) -> Option<Limit> {
        let mut word = || self.word();
        match kind {
            QUOTA => quota_of([word()?, word()?, word()?], [word()?, word()?, word()?]).map(Limit::Quota),
            GRANTED_QUOTA => {
                let quota = quota_of([word()?, word()?, word()?], [word()?, word()?, word()?])?;
                Some(Limit::Quota(quota.with_grant(word()?)))
            }
            _ => limit_of(kind, [word()?, word()?, word()?, word()?]),
        }
    }

    fn cost(&mut self) -> Option<(Box<str>, u64)> {
        let length = usize::from(self.byte()?);
        let (name, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some((Box::from(str::from_utf8(name).ok()?), self.word()?))
    }

    fn reserved(&mut self) -> Option<Reserved> {
        let (kind, share, flags) = (self.byte()?, self.byte()?, self.byte()?);
        let (prices, pieces) = (self.byte()?, self.byte()?);
        let bucket = Digest([self.word()?, self.word()?]);
        let place = self.word()?;
        let owner = Owner { id: place as u32, share, namespace: self.word()? as u32 };
        let slot = u128::from(self.word()?) | u128::from(self.word()?) << 64;
        let slot = (flags & HOLDS != 0).then_some(SlotId(slot));
        let limit = self.limit(kind)?;
        let prices = (0..prices).map(|_| Some((self.byte()?, self.word()?))).collect::<Option<_>>()?;
        let identity = (place >> 32) as u32;
        let mut piece = || {
            let (units, stamp, number) = (self.word()?, Time::from_nanos(self.word()?), Some(self.word()?));
            Some(Receipt { bucket, limit, owner, identity, units, stamp, slot, number })
        };
        let pieces: SmallVec<[Receipt; 1]> = (0..pieces).map(|_| piece()).collect::<Option<_>>()?;
        if pieces.is_empty() {
            return None;
        }
        Some(Reserved { pieces, prices, own: flags & OWN != 0, shadow: flags & SHADOW != 0 })
    }

    /// The rest of a reservation of an earlier version.
    fn one_meter(&mut self, version: u8, local: bool) -> Option<Reservation> {
        let cost = self.word()?;
        let number = match version {
            ONE_METER => Some(self.word()?),
            WITHOUT_NUMBER => None,
            _ => return None,
        };
        let mut entries: SmallVec<[Reserved; 4]> = SmallVec::new();
        while !self.0.is_empty() {
            entries.push(self.reserved_of_one_meter()?);
        }
        let number = number.or_else(|| entries.iter().find_map(|entry| entry.pieces.first()?.number));
        let costs = ReservedCosts(SmallVec::from_iter([(Box::from(Request::REQUESTS), cost)]));
        Some(Reservation { costs, entries, local, number, step: 0 })
    }

    fn reserved_of_one_meter(&mut self) -> Option<Reserved> {
        let (kind, share, flags) = (self.byte()?, self.byte()?, self.byte()?);
        let mut word = || self.word();
        let bucket = Digest([word()?, word()?]);
        let place = word()?;
        let owner = Owner { id: place as u32, share, namespace: word()? as u32 };
        let (units, stamp) = (word()?, Time::from_nanos(word()?));
        let slot = u128::from(word()?) | u128::from(word()?) << 64;
        let price = word()?;
        let limit = limit_of(kind, [word()?, word()?, word()?, word()?])?;
        let slot = (flags & HOLDS != 0).then_some(SlotId(slot));
        let (identity, number) = ((place >> 32) as u32, Some(word()?));
        let receipt = Receipt { bucket, limit, owner, identity, units, stamp, slot, number };
        let (pieces, prices) = (SmallVec::from_iter([receipt]), SmallVec::from_iter([(0, price)]));
        Some(Reserved { pieces, prices, own: flags & OWN != 0, shadow: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservation() -> Reservation {
        let span = Span::from_secs(60);
        let quota = Quota::new(10, Time::from_secs(5), Time::from_secs(7), Quota::FOREVER).unwrap();
        let limits = [
            Limit::Gcra(Gcra::new(10, span, 20).unwrap().with_max_debt(7).unwrap()),
            Limit::Queue(Queue::new(10, span, Span::from_secs(9)).unwrap()),
            Limit::FixedWindow(FixedWindow::new(10, span).unwrap().with_offset(Span::SECOND)),
            Limit::SlidingLog(SlidingLog::new(10, span).unwrap()),
            Limit::SlidingCounter(SlidingCounter::new(10, span).unwrap().with_offset(Span::SECOND)),
            Limit::Concurrency(Concurrency::new(10, span).unwrap()),
            Limit::Quota(quota.with_overdraft(3).with_rollover(4)),
            Limit::Quota(quota.with_overdraft(3).with_grant(500)),
        ];
        let entries = limits.into_iter().enumerate().map(|(number, limit)| {
            let slot = matches!(limit, Limit::Concurrency(_)).then_some(SlotId(u128::MAX - 5));
            let (bucket, owner) =
                (Digest([number as u64, u64::MAX]), Owner { id: number as u32, share: 40, namespace: 8 });
            let identity = u32::MAX - 3;
            let piece = |seconds: u64, units: u64| {
                let stamp = Time::from_secs(1_700_000_000 + seconds);
                Receipt { bucket, limit, owner, identity, units, stamp, slot, number: None }
            };
            let pieces = (0..=number as u64).map(|second| piece(second, 3 + second)).collect();
            let prices = SmallVec::from_iter([(0, 2), (1, number as u64)]);
            Reserved { pieces, prices, own: number % 2 == 1, shadow: number % 3 == 1 }
        });
        let costs = [(Box::from(Request::REQUESTS), 3), (Box::from("output_tokens"), 4096)];
        let costs = ReservedCosts(SmallVec::from_iter(costs));
        Reservation { costs, entries: entries.collect(), local: true, number: None, step: 9 }
    }

    fn packed() -> Vec<u8> {
        let mut bytes = Vec::new();
        reservation().pack(&mut bytes);
        bytes
    }

    /// The reservation as text, without the numbers that packing draws.
    fn unnumbered(mut reservation: Reservation) -> String {
        reservation.number = None;
        reservation.entries.iter_mut().flat_map(|entry| &mut entry.pieces).for_each(|piece| piece.number = None);
        format!("{reservation:?}")
    }

    #[test]
    fn decodes_to_the_same_reservation_with_numbers() {
        let back = Reservation::unpack(&packed()).unwrap();
        assert!(back.entries.iter().flat_map(|entry| &entry.pieces).all(|piece| piece.number.is_some()));
        assert_eq!(unnumbered(back), unnumbered(reservation()));
    }

    /// An extended reservation is packed again: what was settled under its numbers stays settled.
    #[test]
    fn numbers_stay_the_same_when_it_is_packed_again() {
        let first = packed();
        let mut second = Vec::new();
        Reservation::unpack(&first).unwrap().pack(&mut second);
        assert_eq!(first, second);
    }

    #[test]
    fn every_reservation_has_a_number_also_one_that_no_rule_charged() {
        let number = |charged: bool| {
            let mut reservation = reservation();
            if !charged {
                reservation.entries.clear();
            }
            let mut bytes = Vec::new();
            reservation.pack(&mut bytes);
            Reservation::unpack(&bytes).unwrap().number().unwrap()
        };
        for charged in [false, true] {
            assert_ne!(number(charged), number(charged));
        }
    }

    /// Written by earlier versions: cost 3 at price 2 on a token bucket of 10 a minute, 20 at once.
    #[test]
    fn receipts_of_earlier_versions_are_still_read() {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let entry = [&[0, 40, 0][..], &words(&[1, 2, 5 << 32 | 6, 8, 6, 77, 0, 0, 2, 10, 60_000_000_000, 20, 7, 123])];
        let entry = entry.concat();
        let with_number = [&[ONE_METER, 0][..], &words(&[3, 99]), &entry].concat();
        let without = [&[WITHOUT_NUMBER, 0][..], &words(&[3]), &entry].concat();
        for (bytes, number) in [(with_number, 99), (without, 123)] {
            let back = Reservation::unpack(&bytes).unwrap();
            let [entry] = back.entries.as_slice() else { panic!("one bucket") };
            let piece = &entry.pieces[0];
            assert_eq!((back.cost(), back.number(), entry.units(&back.costs)), (3, Some(number), 6));
            assert_eq!((piece.units, piece.stamp.nanos(), piece.number, piece.identity), (6, 77, Some(123), 5));
        }
    }

    #[test]
    fn malformed_bytes_are_rejected() {
        let bytes = packed();
        let mut ends = vec![];
        for count in 0..=reservation().entries.len() {
            let mut prefix = Vec::new();
            let mut part = reservation();
            part.entries.truncate(count);
            part.pack(&mut prefix);
            ends.push(prefix.len());
        }
        for length in (0..bytes.len()).filter(|length| !ends.contains(length)) {
            assert!(Reservation::unpack(&bytes[..length]).is_none(), "{length} of {} bytes", bytes.len());
        }
        let mut other = bytes.clone();
        other[0] = VERSION + 1;
        assert!(Reservation::unpack(&other).is_none());
    }
}
