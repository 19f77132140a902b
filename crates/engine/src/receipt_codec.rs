//! Encodes a reservation into bytes that leave the process, and decodes them.
//!
//! The server signs the bytes and decodes only what carries its signature, so the decoder trusts them. Every receipt
//! gets a number when it is encoded, by which the store honours it once.

use smallvec::SmallVec;
use tollgate_core::{
    Concurrency, Digest, FixedWindow, Gcra, Limit, Owner, Queue, Quota, Receipt, SlidingCounter, SlidingLog, SlotId,
    Span, Time,
};

use crate::random;
use crate::reservation::{Reservation, Reserved};

/// The version of the layout.
const VERSION: u8 = 4;
/// The layout before reservations had a number. Such receipts are settled for a day after an upgrade.
const WITHOUT_NUMBER: u8 = 3;
/// Flags of a charge: it holds a slot; it was charged to the static share of the node.
const HOLDS: u8 = 1;
const OWN: u8 = 2;
/// The kind of a quota, which has two more numbers than other limits.
const QUOTA: u8 = 6;

impl Reservation {
    /// Appends the encoded reservation to `out`. It is settled when the bytes come back.
    pub fn pack(self, out: &mut Vec<u8>) {
        let Reservation { cost, entries, local, .. } = self;
        out.extend([VERSION, u8::from(local)]);
        put(out, cost);
        put(out, random::unpredictable());
        for Reserved { receipt, price, own } in entries {
            let Receipt { bucket: Digest([a, b]), limit, owner, identity, units, stamp, slot, .. } = receipt;
            let (kind, numbers) = limit_numbers(&limit);
            let flags = if slot.is_some() { HOLDS } else { 0 } | if own { OWN } else { 0 };
            out.extend([kind, owner.share, flags]);
            let SlotId(slot) = slot.unwrap_or(SlotId(0));
            let place = u64::from(identity) << 32 | u64::from(owner.id);
            let words = [
                a,
                b,
                place,
                u64::from(owner.namespace),
                units,
                stamp.nanos(),
                slot as u64,
                (slot >> 64) as u64,
                price,
            ];
            words.into_iter().chain(numbers).chain([random::unpredictable()]).for_each(|word| put(out, word));
        }
    }

    /// Decodes a reservation; `None` if the bytes are malformed.
    pub fn unpack(bytes: &[u8]) -> Option<Reservation> {
        let mut bytes = Bytes(bytes);
        let (version, local) = (bytes.byte()?, bytes.byte()?);
        let cost = bytes.word()?;
        let number = match version {
            VERSION => Some(bytes.word()?),
            WITHOUT_NUMBER => None,
            _ => return None,
        };
        let mut entries: SmallVec<[Reserved; 4]> = SmallVec::new();
        while !bytes.0.is_empty() {
            entries.push(bytes.reserved()?);
        }
        let number = number.or_else(|| entries.iter().find_map(|entry| entry.receipt.number));
        Some(Reservation { cost, entries, local: local == 1, number })
    }

    /// A unique number, once the reservation has been packed; also if no rule charged it.
    pub fn number(&self) -> Option<u64> {
        self.number
    }
}

/// Encodes a limit as a kind and four numbers, or six of a quota.
fn limit_numbers(limit: &Limit) -> (u8, SmallVec<[u64; 6]>) {
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
            return (QUOTA, numbers.into_iter().chain(bounds).collect());
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

fn quota_of([amount, overdraft, rollover]: [u64; 3], [start, end, next_end]: [u64; 3]) -> Option<Limit> {
    let time = Time::from_nanos;
    let quota = Quota::new(amount, time(start), time(end), time(next_end)).ok()?;
    Some(Limit::Quota(quota.with_overdraft(overdraft).with_rollover(rollover)))
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

    fn reserved(&mut self) -> Option<Reserved> {
        let (kind, share, flags) = (self.byte()?, self.byte()?, self.byte()?);
        let mut word = || self.word();
        let bucket = Digest([word()?, word()?]);
        let place = word()?;
        let owner = Owner { id: place as u32, share, namespace: word()? as u32 };
        let (units, stamp) = (word()?, Time::from_nanos(word()?));
        let slot = u128::from(word()?) | u128::from(word()?) << 64;
        let price = word()?;
        let limit = match kind {
            QUOTA => quota_of([word()?, word()?, word()?], [word()?, word()?, word()?])?,
            _ => limit_of(kind, [word()?, word()?, word()?, word()?])?,
        };
        let slot = (flags & HOLDS != 0).then_some(SlotId(slot));
        let receipt =
            Receipt { bucket, limit, owner, identity: (place >> 32) as u32, units, stamp, slot, number: Some(word()?) };
        Some(Reserved { receipt, price, own: flags & OWN != 0 })
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
        ];
        let entries = limits.into_iter().enumerate().map(|(number, limit)| {
            let slot = matches!(limit, Limit::Concurrency(_)).then_some(SlotId(u128::MAX - 5));
            let (bucket, owner) =
                (Digest([number as u64, u64::MAX]), Owner { id: number as u32, share: 40, namespace: 8 });
            let identity = u32::MAX - 3;
            let (stamp, own) = (Time::from_secs(1_700_000_000), number % 2 == 1);
            let receipt = Receipt { bucket, limit, owner, identity, units: 3, stamp, slot, number: None };
            Reserved { receipt, price: 2, own }
        });
        Reservation { cost: 3, entries: entries.collect(), local: true, number: None }
    }

    fn packed() -> Vec<u8> {
        let mut bytes = Vec::new();
        reservation().pack(&mut bytes);
        bytes
    }

    #[test]
    fn decodes_to_the_same_reservation_with_numbers() {
        let (back, original) = (Reservation::unpack(&packed()).unwrap(), reservation());
        assert_eq!((back.cost, back.local, back.entries.len()), (original.cost, true, original.entries.len()));
        for (back, original) in back.entries.iter().zip(&original.entries) {
            assert!(back.receipt.number.is_some());
            assert_eq!((back.price, back.own), (original.price, original.own));
            let back = format!("{:?}", back.receipt).replace(&format!("{:?}", back.receipt.number), "None");
            assert_eq!(back, format!("{:?}", original.receipt));
        }
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

    #[test]
    fn receipts_from_before_reservations_had_numbers_are_still_read() {
        let mut bytes = packed();
        bytes[0] = WITHOUT_NUMBER;
        bytes.drain(10..18);
        let back = Reservation::unpack(&bytes).unwrap();
        assert_eq!(back.number(), back.entries[0].receipt.number);
    }

    #[test]
    fn malformed_bytes_are_refused() {
        let bytes = packed();
        let whole = bytes.len();
        let entry = (whole - 18 - 16) / reservation().entries.len();
        let entries_end = whole - entry - 16; // the last one is a quota, with two more numbers
        for length in (0..whole).filter(|length| *length < 18 || *length > entries_end || (length - 18) % entry != 0) {
            assert!(Reservation::unpack(&bytes[..length]).is_none(), "{length} of {whole} bytes");
        }
        let mut other = bytes.clone();
        other[0] = VERSION + 1;
        assert!(Reservation::unpack(&other).is_none());
    }
}
