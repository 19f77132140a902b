//! How much text a response has, before its usage is reported.

use super::generated::{GeneratedPart, Statement};
use super::settings::TokenCounter;

/// Bytes of Base64 that cost one token: a second of sound is 64,000 bytes and about 20 tokens, a picture a million bytes
/// and about a thousand.
const MEDIA_BYTES_PER_TOKEN: u64 = 1_024;

/// Text of a response. What is stated again counts once: the longest statement is the whole text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TextCount {
    first: StatedText,
    items: StatedText,
    response: StatedText,
}

#[derive(Clone, Copy, Debug, Default)]
struct StatedText {
    bytes: u64,
    media_bytes: u64,
    /// Pieces of text. Models stream whole tokens, so that each piece has at least one.
    pieces: u64,
}

impl TextCount {
    /// Adds bytes of a value.
    pub(super) fn add(&mut self, part: GeneratedPart, bytes: u64) {
        let stated = self.stated(part.statement);
        let place = if part.is_media { &mut stated.media_bytes } else { &mut stated.bytes };
        *place = place.saturating_add(bytes);
    }

    /// A piece of text is whole.
    pub(super) fn end_piece(&mut self, part: GeneratedPart) {
        let stated = self.stated(part.statement);
        stated.pieces = stated.pieces.saturating_add(1);
    }

    /// Adds bytes that cannot be read.
    pub(super) fn add_opaque(&mut self, bytes: u64) {
        self.first.bytes = self.first.bytes.saturating_add(bytes);
    }

    /// Both together.
    pub(super) fn with(&self, other: &TextCount) -> TextCount {
        TextCount {
            first: self.first.with(&other.first),
            items: self.items.with(&other.items),
            response: self.response.with(&other.response),
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        [self.first, self.items, self.response].iter().all(|stated| stated.bytes == 0 && stated.media_bytes == 0)
    }

    /// An estimate of its tokens.
    pub(super) fn tokens(&self, counter: TokenCounter) -> u64 {
        let all = [self.first, self.items, self.response];
        all.iter().map(|stated| stated.tokens(counter)).max().unwrap_or(0)
    }

    fn stated(&mut self, statement: Statement) -> &mut StatedText {
        match statement {
            Statement::First => &mut self.first,
            Statement::Items => &mut self.items,
            Statement::Response => &mut self.response,
        }
    }
}

impl StatedText {
    fn with(&self, other: &StatedText) -> StatedText {
        StatedText {
            bytes: self.bytes.saturating_add(other.bytes),
            media_bytes: self.media_bytes.saturating_add(other.media_bytes),
            pieces: self.pieces.saturating_add(other.pieces),
        }
    }

    fn tokens(&self, counter: TokenCounter) -> u64 {
        let media = self.media_bytes.div_ceil(MEDIA_BYTES_PER_TOKEN);
        counter.tokens(self.bytes).saturating_add(media).max(self.pieces)
    }
}
