//! Literals of patterns: text that every matching value contains.

mod counts;
mod crowded;

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::path::PathCase;
use crate::pattern::Pattern;
use crate::route::{PathPattern, Segment, Tail};

pub use counts::{IndexChoice, LiteralCounts};
pub use crowded::{CROWD_MAX, CrowdedPattern, crowded, wildcards};

/// Text that every matching value contains.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Literal<'a> {
    /// The value itself.
    Whole(Cow<'a, str>),
    /// Its start.
    Start(Cow<'a, [u8]>),
    /// Its end.
    End(Cow<'a, [u8]>),
    /// A piece anywhere in it; at most 32 bytes long.
    Piece(Cow<'a, [u8]>),
}

/// Longest piece: bounds the size of the automaton, and the number of pieces that end at one byte.
pub(super) const PIECE_BYTES_MAX: usize = 32;

/// Literals of one pattern; each of them suffices to find it. If there is none, any value may match.
pub(super) type Literals<'a> = SmallVec<[Literal<'a>; 4]>;

impl Literal<'_> {
    fn text(&self) -> &[u8] {
        match self {
            Literal::Whole(text) => text.as_bytes(),
            Literal::Start(text) | Literal::End(text) | Literal::Piece(text) => text,
        }
    }

    /// Order among literals that equally many patterns share: anchored ones are faster to look up, long ones are rarer.
    pub(super) fn rank(&self) -> (u8, usize) {
        let kind = match self {
            Literal::Whole(_) => 0,
            Literal::Start(_) | Literal::End(_) => 1,
            Literal::Piece(_) => 2,
        };
        (kind, usize::MAX - self.text().len())
    }

    /// The literal for a message.
    pub(super) fn shown(&self) -> String {
        String::from_utf8_lossy(self.text()).into_owned()
    }
}

/// Literals of a text pattern; networks have none.
pub(super) fn of_pattern(pattern: &Pattern) -> Literals<'_> {
    let mut literals = Literals::new();
    match pattern {
        Pattern::Exact(text) => literals.push(Literal::Whole(Cow::Borrowed(text))),
        Pattern::Prefix(prefix) => literals.push(Literal::Start(Cow::Borrowed(prefix.as_bytes()))),
        Pattern::Glob(glob) => {
            if !glob.prefix.is_empty() {
                literals.push(Literal::Start(Cow::Borrowed(glob.prefix.as_bytes())));
            }
            if !glob.suffix.is_empty() {
                literals.push(Literal::End(Cow::Borrowed(glob.suffix.as_bytes())));
            }
            glob.middle.iter().for_each(|piece| push_piece(&mut literals, Cow::Borrowed(piece.as_bytes())));
        }
        Pattern::Any | Pattern::Cidr(_) => {}
    }
    literals
}

/// Literals of a path pattern with inner stars; in lower case if it ignores case.
pub(super) fn of_path(pattern: &PathPattern) -> Literals<'_> {
    let mut literals = Literals::new();
    let Tail::Glob(glob) = &pattern.tail else { return literals };
    // The text before the first parameter is the start; the rest are pieces.
    let (mut start, mut open) = (String::new(), true);
    for segment in &pattern.segments {
        match segment {
            Segment::Literal(text) if open => start.extend(["/", text]),
            Segment::Literal(text) => push_piece(&mut literals, Cow::Owned(format!("/{text}").into_bytes())),
            Segment::Param(_) if open => {
                start.push('/');
                open = false;
            }
            Segment::Param(_) => {}
        }
    }
    let parts = glob.parts();
    if open {
        start.push_str(parts.start.unwrap_or_default());
    }
    if !start.is_empty() {
        literals.push(Literal::Start(Cow::Owned(start.into_bytes())));
    }
    if let Some(end) = parts.end {
        literals.push(Literal::End(Cow::Borrowed(end.as_bytes())));
    }
    let unplaced = parts.start.filter(|_| !open).into_iter().chain(parts.inner);
    unplaced.for_each(|piece| push_piece(&mut literals, Cow::Borrowed(piece.as_bytes())));
    if pattern.case == PathCase::Insensitive {
        literals.iter_mut().for_each(fold);
    }
    literals
}

/// Adds both ends of a long piece: patterns with the same start may have different ends, and vice versa.
fn push_piece<'a>(literals: &mut Literals<'a>, piece: Cow<'a, [u8]>) {
    if piece.is_empty() {
        return;
    }
    if piece.len() <= PIECE_BYTES_MAX {
        literals.push(Literal::Piece(piece));
        return;
    }
    let cut = piece.len() - PIECE_BYTES_MAX;
    let (first, last) = match piece {
        Cow::Borrowed(piece) => (piece.get(..PIECE_BYTES_MAX).map(Cow::Borrowed), piece.get(cut..).map(Cow::Borrowed)),
        Cow::Owned(piece) => (
            piece.get(..PIECE_BYTES_MAX).map(|piece| Cow::Owned(piece.to_vec())),
            piece.get(cut..).map(|piece| Cow::Owned(piece.to_vec())),
        ),
    };
    literals.extend(first.into_iter().chain(last).map(Literal::Piece));
}

fn fold(literal: &mut Literal<'_>) {
    match literal {
        Literal::Whole(text) => text.to_mut().make_ascii_lowercase(),
        Literal::Start(text) | Literal::End(text) | Literal::Piece(text) => text.to_mut().make_ascii_lowercase(),
    }
}
