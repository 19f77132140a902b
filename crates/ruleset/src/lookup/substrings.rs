//! Finds the pieces that a value contains, in one pass of an Aho-Corasick automaton.

use std::fmt;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};

use super::Ids;

/// An automaton of pieces.
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
