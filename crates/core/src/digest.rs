//! A bucket's identity: a keyed 128-bit hash over length-prefixed parts.
//!
//! Two requests share a bucket exactly when rule and all key parts are equal. Plain concatenation cannot promise that
//! (`a_b` + `c` is `a` + `b_c`), so every part is preceded by its length, and callers, who choose their keys, cannot
//! aim for a collision without the secret. The function is SipHash-1-3 with 128 bits of output, over parts padded to
//! whole words: absorbing word by word needs no buffer, and a rule's own part is absorbed once, when it is compiled.

use std::fmt;

use crate::last_word;

/// Identifies one bucket. Uniformly distributed, so stores may use any of its bits directly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Digest(pub [u64; 2]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = self.0;
        write!(f, "{a:016x}{b:016x}")
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The key of the hash. All nodes that share buckets share it; `Debug` does not print it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u64; 2]);

impl Secret {
    /// A secret of sixteen bytes, which should be random.
    pub fn new(bytes: [u8; 16]) -> Secret {
        let [a, b] = words(&bytes);
        Secret([a, b])
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

fn words(bytes: &[u8; 16]) -> [u64; 2] {
    let n = u128::from_le_bytes(*bytes);
    [n as u64, (n >> 64) as u64]
}

/// Absorbs the parts of a key. Rules copy a hasher that has absorbed their common parts.
#[derive(Clone, Copy)]
pub struct KeyHasher {
    v: [u64; 4],
    words: u64,
}

impl KeyHasher {
    /// A hasher that has absorbed nothing.
    pub fn new(secret: Secret) -> KeyHasher {
        let [k0, k1] = secret.0;
        let v = [
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        KeyHasher { v, words: 0 }
    }

    /// Absorbs one part: its length, then its bytes, the last word padded with zeros.
    #[inline]
    pub fn part(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            self.word(last_word(bytes));
        }
    }

    /// Absorbs a missing part, which differs from every part, the empty one included.
    pub fn missing(&mut self) {
        self.word(u64::MAX);
    }

    /// Absorbs a number.
    #[inline]
    pub fn word(&mut self, word: u64) {
        self.words = self.words.wrapping_add(1);
        self.v[3] ^= word;
        self.round();
        self.v[0] ^= word;
    }

    /// The digest of everything absorbed.
    #[inline]
    pub fn finish(mut self) -> Digest {
        let length = (self.words & 31) << 59; // bytes absorbed modulo 256, in the top byte
        self.v[3] ^= length;
        self.round();
        self.v[0] ^= length;
        self.v[2] ^= 0xee;
        let low = self.squeeze();
        self.v[1] ^= 0xdd;
        Digest([low, self.squeeze()])
    }

    #[inline]
    fn squeeze(&mut self) -> u64 {
        (0..3).for_each(|_| self.round());
        self.v[0] ^ self.v[1] ^ self.v[2] ^ self.v[3]
    }

    #[inline]
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.v;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.v = [a, b, c, d];
    }
}

impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHasher(…)")
    }
}

#[cfg(test)]
mod tests {
    use siphasher::sip128::{Hasher128, SipHasher13};
    use std::hash::Hasher;

    use super::*;

    const KEY: [u8; 16] = *b"sixteen secret !";

    fn digest(parts: &[&[u8]]) -> Digest {
        let mut hasher = KeyHasher::new(Secret::new(KEY));
        parts.iter().for_each(|part| hasher.part(part));
        hasher.finish()
    }

    #[test]
    fn equals_siphash_1_3_128_over_the_padded_parts() {
        for parts in [vec![], vec!["a"], vec!["12345678"], vec!["", "x", "123456789"], vec!["y"; 40]] {
            let mut bytes = Vec::new();
            for part in &parts {
                bytes.extend((part.len() as u64).to_le_bytes());
                bytes.extend(part.as_bytes());
                bytes.resize(bytes.len().next_multiple_of(8), 0);
            }
            let mut reference = SipHasher13::new_with_key(&KEY);
            reference.write(&bytes);
            let expected = reference.finish128();
            let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
            assert_eq!(digest(&parts), Digest([expected.h1, expected.h2]));
        }
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let keys: [&[&[u8]]; 6] = [&[b"a_b", b"c"], &[b"a", b"b_c"], &[b"a:b"], &[b"a\0"], &[b"a"], &[b"a", b""]];
        for (i, a) in keys.iter().enumerate() {
            for b in &keys[i + 1..] {
                assert_ne!(digest(a), digest(b), "{a:?} and {b:?} share a bucket");
            }
        }
    }

    #[test]
    fn a_missing_part_is_not_an_empty_one() {
        let mut missing = KeyHasher::new(Secret::new(KEY));
        missing.missing();
        assert_ne!(missing.finish(), digest(&[b""]));
    }

    #[test]
    fn the_secret_stays_secret() {
        let text = format!("{:?} {:?}", Secret::new(KEY), KeyHasher::new(Secret::new(KEY)));
        assert_eq!(text, "Secret(…) KeyHasher(…)");
    }
}
