//! Requests as bytes of fixed length, written once and patched in place.
//!
//! As many copies as may be under way on a connection lie one behind the other, so that a batch is one slice and one
//! write, and nothing is copied.

use std::ops::Range;

use crate::keys::Keys;

/// What stands where a key goes: `key:` and twelve digits.
pub const PLACE: &str = "key:000000000000";
/// Digits of a key's number.
const DIGITS: usize = 12;

/// Copies of one framed request, with the places of their digits.
#[derive(Clone, Debug)]
pub struct Template {
    bytes: Vec<u8>,
    /// Bytes of one copy.
    length: usize,
    /// In every copy.
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// Of the first digit, within a copy.
    at: usize,
    /// Draws a key of its own, instead of the request's.
    own: bool,
}

/// Text with its placeholders made room for: what a protocol puts into a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// The text, every placeholder as wide as a key.
    pub text: String,
    /// Where the digits begin, and whether the key there is drawn anew.
    pub places: Vec<(usize, bool)>,
}

impl Text {
    /// Finds the placeholders.
    pub fn new(source: &str) -> Text {
        let (mut text, mut places) = (String::with_capacity(source.len()), Vec::new());
        let mut rest = source;
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            let (own, tail) = match (after.strip_prefix("key}"), after.strip_prefix("keys}")) {
                (Some(tail), _) => (false, tail),
                (_, Some(tail)) => (true, tail),
                _ => {
                    text.push('{');
                    rest = after;
                    continue;
                }
            };
            places.push((text.len() + PLACE.len() - DIGITS, own));
            text.push_str(PLACE);
            rest = tail;
        }
        text.push_str(rest);
        Text { text, places }
    }
}

impl Template {
    /// Pieces laid end to end, as often as requests may go out at once.
    pub fn new(pieces: &[Text], copies: usize) -> Template {
        let (mut frame, mut places) = (Vec::new(), Vec::new());
        for piece in pieces {
            places.extend(piece.places.iter().map(|(at, own)| Place { at: frame.len() + at, own: *own }));
            frame.extend_from_slice(piece.text.as_bytes());
        }
        Template { bytes: frame.repeat(copies.max(1)), length: frame.len(), places }
    }

    /// The next so many requests (no more than there are copies), keys drawn.
    #[inline]
    pub fn next(&mut self, requests: usize, keys: &mut Keys) -> &[u8] {
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

    fn keys(number: u64) -> Keys {
        Keys::new(number, Popularity::Uniform, 1)
    }

    #[test]
    fn a_number_keeps_its_width() {
        assert_eq!(&digits(0), b"000000000000");
        assert_eq!(&digits(99_999), b"000000099999");
        assert_eq!(&digits(999_999_999_999), b"999999999999");
    }

    #[test]
    fn every_place_of_a_request_gets_the_same_key() {
        let mut template = Template::new(&[Text::new("a {key} b "), Text::new("{\"k\":\"{key}\"}\n")], 3);
        let sent = String::from_utf8(template.next(3, &mut keys(1_000_000)).to_vec()).unwrap();
        let lines: Vec<&str> = sent.lines().collect();
        assert_eq!(lines.len(), 3);
        for line in &lines {
            let key = &line[2..18];
            assert_eq!(*line, format!("a {key} b {{\"k\":\"{key}\"}}"));
        }
        assert_ne!(lines[0], lines[1], "and the next one another");
    }

    #[test]
    fn a_batch_gets_a_key_at_every_place() {
        let mut template = Template::new(&[Text::new("{keys},{keys},{keys}")], 1);
        let sent = String::from_utf8(template.next(1, &mut keys(1_000_000)).to_vec()).unwrap();
        let mut drawn: Vec<&str> = sent.split(',').collect();
        drawn.dedup();
        assert_eq!(drawn.len(), 3, "{sent}");
    }

    #[test]
    fn braces_that_are_no_places_stay() {
        for text in ["", "{", "{}", "{keyx}", "{ke", "{\"a\":{\"b\":1}}", "{{"] {
            assert_eq!(Text::new(text), Text { text: text.to_owned(), places: Vec::new() }, "{text}");
        }
        assert_eq!(Text::new("{{key}}").text, format!("{{{PLACE}}}"));
    }

    #[test]
    fn fewer_requests_than_copies_are_a_shorter_slice() {
        let mut template = Template::new(&[Text::new("x{key}")], 4);
        assert_eq!(template.next(0, &mut keys(1)), b"");
        assert_eq!(template.next(2, &mut keys(1)), b"xkey:000000000000xkey:000000000000");
    }
}
