//! The part of a path pattern from its first star on, matched without backtracking.
//!
//! Chunks between stars consist of text and parameters. A parameter is a whole segment, so a chunk with a given start
//! has one end, and an earlier start never ends later: the first occurrence of each chunk is always right.

use crate::path::PathCase;

/// Text with stars and `{name}` segments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathGlob {
    text: String,
    chunks: Vec<Chunk>,
    /// For a glob that ends in `/*`: the chunks without it, because `/a/` is canonically `/a`.
    bare: Option<Vec<Chunk>>,
}

type Chunk = Vec<GlobPiece>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum GlobPiece {
    Text(String),
    Param,
}

/// Literals of a glob.
pub(crate) struct GlobParts<'a> {
    /// Its start, if that is text.
    pub(crate) start: Option<&'a str>,
    /// Its end, if that is text.
    pub(crate) end: Option<&'a str>,
    /// Text between.
    pub(crate) inner: Vec<&'a str>,
}

impl GlobPiece {
    fn text(&self) -> Option<&str> {
        match self {
            GlobPiece::Text(text) => Some(text),
            GlobPiece::Param => None,
        }
    }
}

impl PathGlob {
    /// The glob of canonical text with at least one star.
    pub(super) fn new(text: &str) -> Self {
        let bare = text.strip_suffix("/*").filter(|bare| bare.contains('*'));
        Self { text: text.to_owned(), chunks: chunks(text), bare: bare.map(chunks) }
    }

    /// The glob as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text that every match contains; for a glob that ends in `/*`, what both forms contain.
    pub(crate) fn parts(&self) -> GlobParts<'_> {
        let chunks = self.bare.as_ref().unwrap_or(&self.chunks);
        let text = |piece: &'_ GlobPiece| matches!(piece, GlobPiece::Text(_));
        let first = chunks.first().and_then(|chunk| chunk.first()).filter(|piece| text(piece));
        let last = chunks.last().and_then(|chunk| chunk.last()).filter(|piece| text(piece) && self.bare.is_none());
        let inner = |piece: &&GlobPiece| {
            text(piece) && !first.is_some_and(|first| std::ptr::eq(first, *piece)) && {
                !last.is_some_and(|last| std::ptr::eq(last, *piece))
            }
        };
        GlobParts {
            start: first.and_then(GlobPiece::text),
            end: last.and_then(GlobPiece::text),
            inner: chunks.iter().flatten().filter(inner).filter_map(GlobPiece::text).collect(),
        }
    }

    /// Whether the whole of `rest` matches.
    pub fn matches(&self, rest: &str, case: PathCase) -> bool {
        fits(&self.chunks, rest, case) || self.bare.as_ref().is_some_and(|chunks| fits(chunks, rest, case))
    }
}

/// Whether `text` equals `other`.
pub(super) fn same(text: &str, other: &str, case: PathCase) -> bool {
    match case {
        PathCase::Sensitive => text == other,
        PathCase::Insensitive => text.eq_ignore_ascii_case(other),
    }
}

fn chunks(text: &str) -> Vec<Chunk> {
    text.split('*').map(chunk).collect()
}

fn chunk(text: &str) -> Chunk {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        pieces.push(GlobPiece::Text(before.to_owned()));
        pieces.push(GlobPiece::Param);
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    pieces.push(GlobPiece::Text(rest.to_owned()));
    pieces.retain(|piece| !matches!(piece, GlobPiece::Text(text) if text.is_empty()));
    pieces
}

fn fits(chunks: &[Chunk], rest: &str, case: PathCase) -> bool {
    let [first, middle @ .., last] = chunks else {
        return chunks.first().is_some_and(|only| take(only, rest, case) == Some(""));
    };
    let Some(rest) = take(first, rest, case) else { return false };
    let Some(rest) = take_back(last, rest, case) else { return false };
    middle.iter().try_fold(rest, |rest, chunk| find(chunk, rest, case)).is_some()
}

/// The text after a chunk at the start of `rest`.
fn take<'a>(chunk: &[GlobPiece], rest: &'a str, case: PathCase) -> Option<&'a str> {
    chunk.iter().try_fold(rest, |rest, piece| match piece {
        GlobPiece::Text(text) => {
            let (head, after) = rest.split_at_checked(text.len())?;
            same(text, head, case).then_some(after)
        }
        GlobPiece::Param => {
            let end = rest.find('/').unwrap_or(rest.len());
            (end > 0).then(|| rest.get(end..))?
        }
    })
}

/// The text before a chunk at the end of `rest`.
fn take_back<'a>(chunk: &[GlobPiece], rest: &'a str, case: PathCase) -> Option<&'a str> {
    chunk.iter().rev().try_fold(rest, |rest, piece| match piece {
        GlobPiece::Text(text) => {
            let (before, end) = rest.split_at_checked(rest.len().checked_sub(text.len())?)?;
            same(text, end, case).then_some(before)
        }
        GlobPiece::Param => {
            let start = rest.rfind('/').map_or(0, |slash| slash + 1);
            (start < rest.len()).then(|| rest.get(..start))?
        }
    })
}

/// The text after the first occurrence of a chunk.
fn find<'a>(chunk: &[GlobPiece], rest: &'a str, case: PathCase) -> Option<&'a str> {
    match (chunk, case) {
        ([], _) => Some(rest),
        ([GlobPiece::Text(text)], PathCase::Sensitive) => rest.split_once(text.as_str()).map(|(_, after)| after),
        _ => rest.char_indices().find_map(|(at, _)| take(chunk, rest.get(at..)?, case)),
    }
}
