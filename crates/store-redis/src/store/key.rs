//! The key of a bucket, and its hash slot.
//!
//! A key is `tg:{tag}digest`: three characters of the identity's digest, which determine the slot, and the bucket's 128
//! bits in 22 characters. It contains nothing that a client sent. Thirty bytes are the longest key that fits Redis's
//! smallest allocation, which matters for ten million keys.

use std::fmt;

use tollgate_core::{Charge, Digest, Receipt};

pub use crate::client::slot::{SLOTS, slot_of};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The key of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BucketKey([u8; BucketKey::LEN]);

impl BucketKey {
    const LEN: usize = 30;

    /// The key of a bucket by its digest and its identity.
    pub fn new(identity: u32, bucket: Digest) -> BucketKey {
        let mut text = *b"tg:{...}......................";
        let [a, b] = bucket.0;
        let mut bits = u128::from(a) << 64 | u128::from(b);
        for place in text.iter_mut().skip(8).rev() {
            *place = letter(bits as usize);
            bits >>= 6;
        }
        for (place, shift) in text.iter_mut().skip(4).zip([0, 6, 12]) {
            *place = letter((identity >> shift) as usize);
        }
        BucketKey(text)
    }

    /// The key of a charge's bucket.
    pub fn of(charge: &Charge) -> BucketKey {
        BucketKey::new(charge.identity, charge.bucket)
    }

    /// The key of a receipt's bucket.
    pub fn of_receipt(receipt: &Receipt) -> BucketKey {
        BucketKey::new(receipt.identity, receipt.bucket)
    }

    /// True for the keys of buckets; other keys of this store have a different form.
    pub(crate) fn is_bucket_key(key: &[u8]) -> bool {
        let is_letter = |byte: &u8| ALPHABET.contains(byte);
        let Some((tag, digest)) = key.strip_prefix(b"tg:{").and_then(|rest| rest.split_at_checked(3)) else {
            return false;
        };
        let Some(digest) = digest.strip_prefix(b"}") else { return false };
        key.len() == BucketKey::LEN && tag.iter().chain(digest).all(is_letter)
    }

    /// An identity whose keys are in a slot for which `is_served` holds: a server's own keys are placed there.
    pub(crate) fn identity_in(is_served: impl Fn(u16) -> bool) -> Option<u32> {
        (0..1 << 18).find(|identity| is_served(BucketKey::new(*identity, Digest::default()).slot()))
    }

    /// The bytes of the key.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The hash tag: the part between the braces.
    pub fn tag(&self) -> [u8; 3] {
        let [_, _, _, _, a, b, c, ..] = self.0;
        [a, b, c]
    }

    /// The slot of the key in a cluster.
    pub fn slot(&self) -> u16 {
        slot_of(&self.tag())
    }
}

impl fmt::Display for BucketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).unwrap_or_default())
    }
}

impl fmt::Debug for BucketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BucketKey({self})")
    }
}

fn letter(bits: usize) -> u8 {
    ALPHABET.get(bits & 63).copied().unwrap_or(b'A')
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_key_shows_identity_and_digest_and_nothing_else() {
        let key = BucketKey::new(7, Digest([0, 1]));
        assert_eq!(key.to_string(), "tg:{HAA}AAAAAAAAAAAAAAAAAAAAAB");
        assert_eq!(BucketKey::new(7, Digest([u64::MAX, u64::MAX])).to_string(), "tg:{HAA}D_____________________");
        assert_eq!(key.slot(), BucketKey::new(7, Digest([9, 9])).slot());
        assert!(BucketKey::is_bucket_key(key.bytes()));
        for other in ["tg:{AAA}secret", "tg:{AAA}!aaaaaaaaaaaaaaaaaaaaa", "tg:{HAA}AAAAAAAAAAAAAAAAAAAAABB", ""] {
            assert!(!BucketKey::is_bucket_key(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn digests_that_differ_anywhere_have_different_keys() {
        let keys: HashSet<BucketKey> = (0..128)
            .map(|bit| {
                BucketKey::new(
                    0,
                    Digest([1u64.checked_shl(bit).unwrap_or(0), 1u64.checked_shl(bit.wrapping_sub(64)).unwrap_or(0)]),
                )
            })
            .collect();
        assert_eq!(keys.len(), 128);
    }

    #[test]
    fn an_identity_is_found_for_the_slots_of_every_server() {
        for first in (0..SLOTS).step_by(1000) {
            let served = first..=first + 20;
            let identity = BucketKey::identity_in(|slot| served.contains(&slot)).unwrap();
            let slot = BucketKey::new(identity, Digest([1, 2])).slot();
            assert!(served.contains(&slot), "{slot} for {first}");
        }
        assert_eq!(BucketKey::identity_in(|_| false), None);
    }

    #[test]
    fn identities_spread_over_the_slots() {
        let slots: HashSet<u16> =
            (0..1 << 18).map(|identity| BucketKey::new(identity, Digest([0, 0])).slot()).collect();
        assert!(slots.len() > 16_000, "{} slots", slots.len());
    }
}
