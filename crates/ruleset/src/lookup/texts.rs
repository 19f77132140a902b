//! An index of text patterns, stored under their literals: whole texts in a hash table, starts and ends in sorted lists,
//! pieces in an Aho-Corasick automaton.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};
use tollgate_rules::literal::Literal;

use super::{Ids, NONE};
use crate::fast_hash::FastMap;

/// Finds the patterns that may match a text.
#[derive(Debug, Default)]
pub(crate) struct TextIndex {
    whole: FastMap<Box<str>, Ids>,
    starts: AffixIndex,
    ends: AffixIndex,
    pieces: Option<SubstringIndex>,
    /// Patterns that any text may match.
    any: Vec<u32>,
}

impl TextIndex {
    /// Each pattern under one of its literals, or under none.
    pub(crate) fn new<'a>(patterns: impl IntoIterator<Item = (Option<Literal<'a>>, u32)>) -> TextIndex {
        let mut index = TextIndex::default();
        let [mut starts, mut ends, mut pieces]: [HashMap<Vec<u8>, Ids>; 3] = Default::default();
        for (literal, id) in patterns {
            match literal {
                None => index.any.push(id),
                Some(Literal::Whole(text)) => index.whole.entry(text.into()).or_default().push(id),
                Some(Literal::Start(text)) => starts.entry(text.into_owned()).or_default().push(id),
                Some(Literal::End(text)) => ends.entry(text.into_owned()).or_default().push(id),
                Some(Literal::Piece(text)) => pieces.entry(text.into_owned()).or_default().push(id),
            }
        }
        index.starts = AffixIndex::new(Side::Start, starts.into_iter());
        index.ends = AffixIndex::new(Side::End, ends.into_iter());
        let unfit: Vec<u32> = pieces.values().flatten().copied().collect();
        let some = !pieces.is_empty();
        index.pieces = SubstringIndex::new(pieces.into_iter());
        if some && index.pieces.is_none() {
            index.any.extend(unfit); // too many for the automaton: slower, still correct
        }
        index
    }

    /// Calls `hit` for every pattern that may match, perhaps more than once.
    #[inline]
    pub(crate) fn find(&self, value: &str, hit: &mut impl FnMut(u32)) {
        self.any.iter().for_each(|id| hit(*id));
        if !self.whole.is_empty()
            && let Some(ids) = self.whole.get(value)
        {
            ids.iter().for_each(|id| hit(*id));
        }
        self.starts.find(value.as_bytes(), hit);
        self.ends.find(value.as_bytes(), hit);
        if let Some(pieces) = &self.pieces {
            pieces.find(value.as_bytes(), hit);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let anchored = self.starts.is_empty() && self.ends.is_empty() && self.whole.is_empty();
        anchored && self.pieces.is_none() && self.any.is_empty()
    }
}

/// Finds the texts that a value starts or ends with: prefixes or, stored backwards, suffixes.
///
/// The texts are sorted. If a value starts with a text, so does everything between the two. The prefixes of a value are
/// therefore the greatest text that does not sort after it, as far as they share bytes, and the prefixes of that text.
/// One binary search finds the first, and links lead to the others.
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
        for index in 0..entries.len() {
            let starts_with = |entries: &[Affix], parent: u32| {
                let parent = entries.get(parent as usize).map(|parent| &*parent.text);
                entries.get(index).zip(parent).is_some_and(|(entry, parent)| entry.text.starts_with(parent))
            };
            while open.last().is_some_and(|parent| !starts_with(&entries, *parent)) {
                open.pop();
            }
            if let Some(entry) = entries.get_mut(index) {
                entry.parent = open.last().copied().unwrap_or(NONE);
            }
            open.push(index as u32);
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
        let index = low + alike.partition_point(|entry| self.compare(&entry.text, value) != Ordering::Greater);
        let Some(entry) = index.checked_sub(1).and_then(|index| self.entries.get(index)) else { return };
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

/// Finds the pieces that a value contains, in one pass of an automaton.
pub(super) struct SubstringIndex {
    automaton: NFA,
    start: StateID,
    /// Patterns by piece.
    ids: Vec<Ids>,
}

/// Number of recent pieces that one pass remembers.
const REMEMBERED: usize = 64;

impl SubstringIndex {
    /// `None` without pieces, and for more pieces than an automaton can have.
    pub(super) fn new(pieces: impl Iterator<Item = (Vec<u8>, Ids)>) -> Option<SubstringIndex> {
        let (texts, ids): (Vec<Vec<u8>>, Vec<Ids>) = pieces.unzip();
        if texts.is_empty() {
            return None;
        }
        let automaton = NFA::builder().match_kind(MatchKind::Standard).prefilter(false).build(&texts).ok()?;
        let start = automaton.start_state(Anchored::No).ok()?;
        Some(SubstringIndex { automaton, start, ids })
    }

    /// Calls `hit` for each pattern under a piece that `value` contains. A repeated piece is skipped if it was among
    /// the last ones, so a pattern may be hit more than once.
    #[inline]
    pub(super) fn find(&self, value: &[u8], hit: &mut impl FnMut(u32)) {
        let mut last = [u32::MAX; REMEMBERED];
        let mut state = self.start;
        for byte in value {
            state = self.automaton.next_state(Anchored::No, state, *byte);
            if !self.automaton.is_special(state) || !self.automaton.is_match(state) {
                continue;
            }
            for number in 0..self.automaton.match_len(state) {
                let piece = self.automaton.match_pattern(state, number);
                let seen = last.get_mut(piece.as_usize() % REMEMBERED);
                if seen.is_some_and(|seen| std::mem::replace(seen, piece.as_u32()) == piece.as_u32()) {
                    continue;
                }
                self.ids.get(piece.as_usize()).into_iter().flatten().for_each(|id| hit(*id));
            }
        }
    }
}

impl fmt::Debug for SubstringIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubstringIndex").field("pieces", &self.ids.len()).finish_non_exhaustive()
    }
}
