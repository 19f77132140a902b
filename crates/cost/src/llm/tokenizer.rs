//! Counts tokens as models do: byte pair encoding with the ranks of a vocabulary, read from a file.
//!
//! Models cut a text into words before they encode it, by a regular expression that differs from model to model. One
//! cut serves all of them here: letters with the character before them, up to three digits, punctuation, spaces. The
//! result is an estimate of a prompt, within a few percent of what the provider reports and charges in the end.
//!
//! Merging is quadratic in the length of a word, so words are bounded, and so is what is encoded of one prompt: a caller
//! cannot buy seconds of processor time with a long word or a long text.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use tollgate_rules::problem::{ParseError, quote};

/// Longest word; a longer run of letters is cut.
const WORD_BYTES_MAX: usize = 64;
/// How much of a prompt is encoded; the rest is estimated at the ratio of this part.
const ENCODED_BYTES_MAX: u64 = 256 * 1024;
/// Most tokens of a vocabulary: several times the largest that is in use.
const TOKENS_MAX: usize = 1_000_000;

/// The vocabulary of a model.
#[derive(PartialEq, Eq)]
pub struct Tokenizer {
    ranks: HashMap<Box<[u8]>, u32>,
}

impl Tokenizer {
    /// Reads the lines of a `.tiktoken` file: a token in base64, a space, its rank.
    pub fn read(text: &str) -> Result<Tokenizer, ParseError> {
        let mut ranks = HashMap::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let (token, rank) = read_line(line).ok_or_else(|| unreadable(index + 1, line))?;
            ranks.insert(token, rank);
            if ranks.len() > TOKENS_MAX {
                return Err(ParseError::new("the vocabulary has more than a million tokens", HELP));
            }
        }
        match (0..=u8::MAX).find(|byte| !ranks.contains_key([*byte].as_slice())) {
            Some(byte) => Err(ParseError::new(format!("the vocabulary has no token for the byte {byte:#04x}"), HELP)),
            None => Ok(Tokenizer { ranks }),
        }
    }

    /// Tokens of one word.
    fn encode(&self, word: &[u8]) -> u64 {
        if self.ranks.contains_key(word) {
            return 1;
        }
        // Where parts start, and the rank of the part that each would make with the next one.
        let mut starts: Vec<usize> = (0..=word.len()).collect();
        let rank_of = |starts: &[usize], at: usize| {
            let (from, to) = (starts.get(at)?, starts.get(at + 2)?);
            self.ranks.get(word.get(*from..*to)?).copied()
        };
        let mut ranks: Vec<Option<u32>> = (0..word.len()).map(|at| rank_of(&starts, at)).collect();
        while let Some((_, at)) = ranks.iter().enumerate().filter_map(|(at, rank)| Some(((*rank)?, at))).min() {
            starts.remove(at + 1);
            ranks.remove(at + 1);
            for changed in at.saturating_sub(1)..=at {
                if let Some(rank) = ranks.get_mut(changed) {
                    *rank = rank_of(&starts, changed);
                }
            }
        }
        ranks.len() as u64
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer").field("tokens", &self.ranks.len()).finish()
    }
}

const HELP: &str = "name a .tiktoken file: a token in base64, a space and its rank on each line";

fn read_line(line: &str) -> Option<(Box<[u8]>, u32)> {
    let (token, rank) = line.trim_end().split_once(' ')?;
    let token = BASE64_STANDARD.decode(token).ok().filter(|token| !token.is_empty())?;
    Some((token.into(), rank.parse().ok()?))
}

fn unreadable(line: usize, text: &str) -> ParseError {
    ParseError::new(format!("line {line}, {}, is no token and rank", quote(text)), HELP)
}

/// Counts the tokens of a text that comes in pieces.
#[derive(Debug)]
pub(super) struct TokenCount {
    tokenizer: Arc<Tokenizer>,
    word: Vec<u8>,
    kind: WordKind,
    tokens: u64,
    /// Bytes that were encoded, and those that were not.
    encoded: u64,
    skipped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordKind {
    Letters,
    Digits,
    Spaces,
    Marks,
}

impl WordKind {
    /// Bytes of characters beyond ASCII count as letters.
    fn of(byte: u8) -> WordKind {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => WordKind::Letters,
            b'0'..=b'9' => WordKind::Digits,
            b' ' | b'\t' | b'\n' | b'\r' => WordKind::Spaces,
            _ => WordKind::Marks,
        }
    }
}

impl TokenCount {
    pub(super) fn new(tokenizer: Arc<Tokenizer>) -> TokenCount {
        TokenCount { tokenizer, word: Vec::new(), kind: WordKind::Spaces, tokens: 0, encoded: 0, skipped: 0 }
    }

    /// A piece of a text.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let room = usize::try_from(ENCODED_BYTES_MAX.saturating_sub(self.encoded)).unwrap_or(usize::MAX);
        let (encoded, skipped) = bytes.split_at(bytes.len().min(room));
        encoded.iter().for_each(|byte| self.push(*byte));
        self.encoded += encoded.len() as u64;
        self.skipped += skipped.len() as u64;
    }

    /// The text ends: the next piece is of another one.
    pub(super) fn end_text(&mut self) {
        self.tokens += match self.word.is_empty() {
            true => 0,
            false => self.tokenizer.encode(&self.word),
        };
        self.word.clear();
    }

    /// Tokens of all texts that have ended.
    pub(super) fn tokens(&self) -> u64 {
        let rest = u128::from(self.tokens) * u128::from(self.skipped) / u128::from(self.encoded.max(1));
        self.tokens.saturating_add(u64::try_from(rest).unwrap_or(u64::MAX))
    }

    fn push(&mut self, byte: u8) {
        let kind = WordKind::of(byte);
        if !self.continues(kind, byte) {
            self.end_word(kind);
        }
        // Line ends behind marks belong to them.
        let ends_marks = !self.word.is_empty() && self.kind == WordKind::Marks && kind == WordKind::Spaces;
        self.kind = if ends_marks { WordKind::Marks } else { kind };
        self.word.push(byte);
    }

    fn continues(&self, kind: WordKind, byte: u8) -> bool {
        if self.word.is_empty() {
            return true;
        }
        let fits = match (self.kind, kind) {
            (WordKind::Digits, WordKind::Digits) => self.word.len() < 3,
            // A mark in front of letters belongs to them.
            (WordKind::Marks, WordKind::Letters) => self.word.len() == 1,
            (WordKind::Marks, WordKind::Spaces) => matches!(byte, b'\n' | b'\r'),
            (before, now) => before == now,
        };
        fits && self.word.len() < WORD_BYTES_MAX
    }

    /// The word ends; of spaces, the last one leads the word that follows.
    fn end_word(&mut self, next: WordKind) {
        let leads = self.kind == WordKind::Spaces
            && self.word.last() == Some(&b' ')
            && matches!(next, WordKind::Letters | WordKind::Marks);
        if leads {
            self.word.pop();
        }
        self.end_text();
        if leads {
            self.word.push(b' ');
        }
    }
}
