//! Requests as bytes of fixed length, framed once and patched in place.
//!
//! A template holds as many consecutive copies as a connection may have in flight, so that a batch is one slice and one
//! write without copying.

use std::ops::Range;

use crate::keys::KeySampler;

/// Default key, inserted in place of a placeholder: `key:` and twelve digits.
pub const PLACE: &str = "key:000000000000";
/// Digits of a key.
const DIGITS: usize = 12;

/// Copies of one framed request, with the offsets of their keys.
#[derive(Clone, Debug)]
pub struct MessageTemplate {
    bytes: Vec<u8>,
    /// Length of one copy.
    length: usize,
    /// The keys of a copy.
    places: Vec<KeyPlace>,
    /// Offsets of the stream number in a copy; empty for protocols without streams.
    streams: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct KeyPlace {
    /// Offset of the first digit, within a copy.
    at: usize,
    /// True for `{keys}`: draws a key of its own.
    own: bool,
}

/// Bytes whose placeholders are replaced by default keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateText {
    /// The bytes, with keys in place of placeholders.
    pub bytes: Vec<u8>,
    /// Offsets of the keys' digits, and whether each draws a key of its own.
    pub places: Vec<(usize, bool)>,
}

impl TemplateText {
    /// Replaces the placeholders `{key}` and `{keys}`.
    pub fn new(source: impl AsRef<[u8]>) -> TemplateText {
        let mut text = TemplateText::default();
        let mut rest = source.as_ref();
        while let Some(at) = rest.iter().position(|byte| *byte == b'{') {
            let (before, after) = rest.split_at(at);
            text.bytes.extend_from_slice(before);
            let (own, tail) = match (after.strip_prefix(b"{key}"), after.strip_prefix(b"{keys}")) {
                (Some(tail), _) => (false, tail),
                (_, Some(tail)) => (true, tail),
                _ => {
                    text.bytes.push(b'{');
                    rest = after.get(1..).unwrap_or_default();
                    continue;
                }
            };
            text.places.push((text.bytes.len() + PLACE.len() - DIGITS, own));
            text.bytes.extend_from_slice(PLACE.as_bytes());
            rest = tail;
        }
        text.bytes.extend_from_slice(rest);
        text
    }

    /// Length of `source` after its placeholders are replaced.
    pub fn len_of(source: impl AsRef<[u8]>) -> usize {
        TemplateText::new(source).bytes.len()
    }
}

impl MessageTemplate {
    /// Concatenates the pieces of a request, `copies` times.
    pub fn new(pieces: &[TemplateText], copies: usize) -> MessageTemplate {
        let (mut frame, mut places) = (Vec::new(), Vec::new());
        for piece in pieces {
            places.extend(piece.places.iter().map(|(at, own)| KeyPlace { at: frame.len() + at, own: *own }));
            frame.extend_from_slice(&piece.bytes);
        }
        MessageTemplate { bytes: frame.repeat(copies.max(1)), length: frame.len(), places, streams: Vec::new() }
    }

    /// Sets the offsets of the stream number in a request.
    pub fn with_streams(self, streams: &[usize]) -> MessageTemplate {
        MessageTemplate { streams: streams.to_vec(), ..self }
    }

    /// The next `requests` requests (at most the number of copies), with keys drawn. For protocols with streams, the
    /// first request has the number `stream`, and the others the following odd numbers.
    #[inline]
    pub fn next(&mut self, requests: usize, keys: &mut KeySampler, stream: u32) -> &[u8] {
        for copy in 0..requests {
            let start = copy * self.length;
            let key = digits(keys.draw());
            for place in &self.places {
                let key = if place.own { digits(keys.draw()) } else { key };
                let spot: Range<usize> = start + place.at..start + place.at + DIGITS;
                if let Some(spot) = self.bytes.get_mut(spot) {
                    spot.copy_from_slice(&key);
                }
            }
            for at in &self.streams {
                if let Some(spot) = self.bytes.get_mut(start + at..start + at + 4) {
                    spot.copy_from_slice(&(stream + 2 * copy as u32).to_be_bytes());
                }
            }
        }
        self.bytes.get(..requests * self.length).unwrap_or_default()
    }
}

#[inline]
fn digits(mut number: u64) -> [u8; DIGITS] {
    let mut digits = [b'0'; DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Popularity;

    fn keys(number: u64) -> KeySampler {
        KeySampler::new(number, Popularity::Uniform, 1)
    }

    #[test]
    fn a_number_keeps_its_width() {
        assert_eq!(&digits(0), b"000000000000");
        assert_eq!(&digits(99_999), b"000000099999");
        assert_eq!(&digits(999_999_999_999), b"999999999999");
    }

    #[test]
    fn every_placeholder_of_a_request_gets_the_same_key() {
        let mut template =
            MessageTemplate::new(&[TemplateText::new("a {key} b "), TemplateText::new("{\"k\":\"{key}\"}\n")], 3);
        let sent = String::from_utf8(template.next(3, &mut keys(1_000_000), 0).to_vec()).unwrap();
        let lines: Vec<&str> = sent.lines().collect();
        assert_eq!(lines.len(), 3);
        for line in &lines {
            let key = &line[2..18];
            assert_eq!(*line, format!("a {key} b {{\"k\":\"{key}\"}}"));
        }
        assert_ne!(lines[0], lines[1], "the next request gets another");
    }

    #[test]
    fn a_batch_gets_a_key_at_every_placeholder() {
        let mut template = MessageTemplate::new(&[TemplateText::new("{keys},{keys},{keys}")], 1);
        let sent = String::from_utf8(template.next(1, &mut keys(1_000_000), 0).to_vec()).unwrap();
        let mut drawn: Vec<&str> = sent.split(',').collect();
        drawn.dedup();
        assert_eq!(drawn.len(), 3, "{sent}");
    }

    #[test]
    fn other_braces_stay() {
        for text in ["", "{", "{}", "{keyx}", "{ke", "{\"a\":{\"b\":1}}", "{{"] {
            assert_eq!(
                TemplateText::new(text),
                TemplateText { bytes: text.as_bytes().to_vec(), places: Vec::new() },
                "{text}"
            );
        }
        assert_eq!(TemplateText::new("{{key}}").bytes, format!("{{{PLACE}}}").as_bytes());
    }

    #[test]
    fn every_request_gets_a_stream_of_its_own() {
        let mut template = MessageTemplate::new(&[TemplateText::new("....{key}|")], 2).with_streams(&[0]);
        let sent = template.next(2, &mut keys(1), 0x0102_0305).to_vec();
        assert_eq!((&sent[..5], &sent[21..26]), (b"\x01\x02\x03\x05k".as_slice(), b"\x01\x02\x03\x07k".as_slice()));
    }

    #[test]
    fn fewer_requests_than_copies_are_a_shorter_slice() {
        let mut template = MessageTemplate::new(&[TemplateText::new("x{key}")], 4);
        assert_eq!(template.next(0, &mut keys(1), 0), b"");
        assert_eq!(template.next(2, &mut keys(1), 0), b"xkey:000000000000xkey:000000000000");
    }
}
