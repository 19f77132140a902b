//! An index of text patterns, stored under their literals.

use std::collections::HashMap;

use tollgate_rules::literal::Literal;

use super::Ids;
use super::affix::{AffixIndex, Side};
use super::substrings::SubstringIndex;
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
