//! Finds the texts that a value starts or ends with.
//!
//! The texts are sorted. If a value starts with a text, so does everything between the two. The prefixes of a value are
//! therefore the greatest text that does not sort after it, as far as they share bytes, and the prefixes of that text.
//! One binary search finds the first, and links lead to the others.

use std::cmp::Ordering;

use super::{Ids, NONE};

/// Prefixes or, stored backwards, suffixes.
#[derive(Debug, Default)]
pub(super) struct AffixIndex {
    /// The first eight bytes of each text as a number: most comparisons end here, in one cache line.
    keys: Vec<u64>,
    entries: Vec<Affix>,
    side: Side,
}

#[derive(Debug)]
struct Affix {
    text: Box<[u8]>,
    /// Index of the longest other text that this one starts with.
    parent: u32,
    ids: Ids,
}

/// Side of a value that is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Side {
    #[default]
    Start,
    End,
}

impl AffixIndex {
    pub(super) fn new(side: Side, texts: impl Iterator<Item = (Vec<u8>, Ids)>) -> AffixIndex {
        let stored = |(mut text, ids): (Vec<u8>, Ids)| {
            if side == Side::End {
                text.reverse();
            }
            Affix { text: text.into(), parent: NONE, ids }
        };
        let mut entries: Vec<Affix> = texts.map(stored).collect();
        entries.sort_unstable_by(|one, other| one.text.cmp(&other.text));
        let mut open: Vec<u32> = Vec::new();
        for place in 0..entries.len() {
            let starts_with = |entries: &[Affix], parent: u32| {
                let parent = entries.get(parent as usize).map(|parent| &*parent.text);
                entries.get(place).zip(parent).is_some_and(|(entry, parent)| entry.text.starts_with(parent))
            };
            while open.last().is_some_and(|parent| !starts_with(&entries, *parent)) {
                open.pop();
            }
            if let Some(entry) = entries.get_mut(place) {
                entry.parent = open.last().copied().unwrap_or(NONE);
            }
            open.push(place as u32);
        }
        let keys = entries.iter().map(|entry| key(Side::Start, &entry.text)).collect();
        AffixIndex { keys, entries, side }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Calls `hit` for each pattern stored under a text that `value` has on this side.
    #[inline]
    pub(super) fn find(&self, value: &[u8], hit: &mut impl FnMut(u32)) {
        if self.entries.is_empty() {
            return;
        }
        let key = key(self.side, value);
        let high = self.keys.partition_point(|other| *other <= key);
        // Few entries share their first bytes, unless all texts start alike.
        let low = match high.checked_sub(1).and_then(|last| self.keys.get(last)) {
            None => return,
            Some(last) if *last < key => high,
            Some(_) => self.keys.partition_point(|other| *other < key),
        };
        let alike = self.entries.get(low..high).unwrap_or_default();
        let place = low + alike.partition_point(|entry| self.compare(&entry.text, value) != Ordering::Greater);
        let Some(entry) = place.checked_sub(1).and_then(|place| self.entries.get(place)) else { return };
        let common = self.common(&entry.text, value);
        let mut next = Some(entry);
        while let Some(entry) = next {
            if entry.text.len() <= common {
                entry.ids.iter().for_each(|id| hit(*id));
            }
            next = self.entries.get(entry.parent as usize);
        }
    }

    #[inline]
    fn compare(&self, text: &[u8], value: &[u8]) -> Ordering {
        match self.side {
            Side::Start => text.cmp(value),
            Side::End => text.iter().cmp(value.iter().rev()),
        }
    }

    /// Number of equal bytes on this side.
    #[inline]
    fn common(&self, text: &[u8], value: &[u8]) -> usize {
        match self.side {
            Side::Start => text.iter().zip(value).take_while(|(one, other)| one == other).count(),
            Side::End => text.iter().zip(value.iter().rev()).take_while(|(one, other)| one == other).count(),
        }
    }
}

/// The first eight bytes as a number that sorts like the text, padded with zeros; equal numbers are compared in full.
#[inline]
fn key(side: Side, text: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    match side {
        Side::Start => bytes.iter_mut().zip(text).for_each(|(byte, own)| *byte = *own),
        Side::End => bytes.iter_mut().zip(text.iter().rev()).for_each(|(byte, own)| *byte = *own),
    }
    u64::from_be_bytes(bytes)
}
