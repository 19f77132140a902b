//! Seals messages between nodes: a store that others can read shows no client, and only nodes can ask.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};

/// Seals and opens messages of the nodes that have the same secret.
pub(super) struct NodeSealer {
    key: Option<RandomizedNonceKey>,
    fleet: String,
}

/// What a message is: an answer is no question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SealedKind {
    Question,
    Answer,
}

impl SealedKind {
    const fn context(self) -> &'static [u8] {
        match self {
            SealedKind::Question => b"question",
            SealedKind::Answer => b"answer",
        }
    }
}

impl NodeSealer {
    /// Keyed by a secret that all nodes share.
    pub(super) fn new(secret: &[u8; 32]) -> NodeSealer {
        let derive = |purpose: &[u8]| sign(&Key::new(HMAC_SHA256, secret), purpose);
        let name = derive(b"channel");
        NodeSealer {
            key: RandomizedNonceKey::new(&AES_256_GCM, derive(b"messages").as_ref()).ok(),
            fleet: name.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// The name of the fleet: the same for all that have the secret, which it does not tell.
    pub(super) fn fleet(&self) -> &str {
        &self.fleet
    }

    /// A message that only nodes of the fleet can read. `number` is that of the question.
    pub(super) fn seal(&self, kind: SealedKind, number: u64, text: &str) -> Option<Vec<u8>> {
        let mut bytes = number.to_be_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        let nonce = self.key.as_ref()?.seal_in_place_append_tag(Aad::from(kind.context()), &mut bytes).ok()?;
        Some([nonce.as_ref().as_slice(), &bytes].concat())
    }

    /// The number of the question, and the text.
    pub(super) fn open(&self, kind: SealedKind, message: &[u8]) -> Option<(u64, Vec<u8>)> {
        let (nonce, sealed) = message.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let opened = self.key.as_ref()?.open_in_place(nonce, Aad::from(kind.context()), &mut sealed).ok()?;
        let (number, text) = opened.split_first_chunk::<8>()?;
        Some((u64::from_be_bytes(*number), text.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nodes_with_the_same_secret_read_a_message_and_only_as_what_it_is() {
        let [one, other, stranger] = [[1; 32], [1; 32], [2; 32]].map(|secret| NodeSealer::new(&secret));
        let sealed = one.seal(SealedKind::Question, 7, "user:42").unwrap();
        assert_eq!(other.open(SealedKind::Question, &sealed), Some((7, b"user:42".to_vec())));
        assert!(!sealed.windows(7).any(|part| part == b"user:42"));
        assert_eq!((one.fleet(), one.fleet() == stranger.fleet()), (other.fleet(), false));
        assert_eq!(stranger.open(SealedKind::Question, &sealed), None);
        assert_eq!(other.open(SealedKind::Answer, &sealed), None);
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert_eq!(other.open(SealedKind::Question, &changed), None, "changed at {place}");
            assert_eq!(other.open(SealedKind::Question, &sealed[..place]), None, "cut at {place}");
        }
    }
}
