//! The keys of all candidates: sixteen bytes each, in one random order.
//!
//! A sequence is one long text, key after key, read from front to back: taking the next `&str` costs a nanosecond and no
//! cache miss, as for a server that has just read the request.

/// Bytes per key: `key:000000012345`.
const LENGTH: usize = 16;

/// The key of that number.
pub fn key(number: usize) -> String {
    format!("key:{number:012}")
}

/// All keys once, in order: fills a store.
pub fn all(keys: usize) -> Sequence {
    Sequence::of(0..keys, keys)
}

/// `length` keys drawn at random from `keys`.
pub fn random(keys: usize, length: usize, seed: u64) -> Sequence {
    let mut state = seed | 1;
    let draw = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((u128::from(state) * keys as u128) >> 64) as usize
    });
    Sequence::of(draw.take(length), length)
}

/// Keys in the order in which they are asked for.
#[derive(Debug)]
pub struct Sequence(String);

impl Sequence {
    fn of(numbers: impl Iterator<Item = usize>, length: usize) -> Sequence {
        use std::fmt::Write as _;
        let mut text = String::with_capacity(length * LENGTH);
        for number in numbers {
            let _ = write!(text, "key:{number:012}"); // a String takes everything
        }
        Sequence(text)
    }

    /// Keys in it.
    pub fn len(&self) -> usize {
        self.0.len() / LENGTH
    }

    /// The keys one after the other.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut rest = self.0.as_str();
        std::iter::from_fn(move || {
            let (key, after) = rest.split_at_checked(LENGTH)?;
            rest = after;
            Some(key)
        })
    }
}
