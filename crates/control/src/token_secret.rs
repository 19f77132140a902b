//! Generates tokens, `tg_<id>_<secret>`, and API keys, `tk_<id>_<secret>`.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};

use crate::{Error, Result};

/// 32 characters, so that each encodes five bits of a random byte with equal probability. No `0`, `1`, `i` or `l`:
/// people read tokens aloud.
const ALPHABET: &[u8; 32] = b"abcdefghjkmnopqrstuvwxyz23456789";
const ID_LENGTH: usize = 12;
/// In characters; 160 bits.
const SECRET_LENGTH: usize = 32;

/// A new token. Only [`full_token`](TokenSecret::full_token) reveals it.
pub(crate) struct TokenSecret {
    id: String,
    secret: String,
}

impl TokenSecret {
    /// Generates a token from the system's random numbers.
    pub(crate) fn new() -> Result<TokenSecret> {
        let mut bytes = [0; ID_LENGTH + SECRET_LENGTH];
        let random = SystemRandom::new();
        random.fill(&mut bytes).map_err(|_| Error::Unexpected("the system provides no random bytes".to_owned()))?;
        let symbol = |byte: &u8| ALPHABET.get(usize::from(byte & 31)).map(|&symbol| char::from(symbol));
        let text: String = bytes.iter().filter_map(symbol).collect();
        let (id, secret) = text.split_at(ID_LENGTH);
        Ok(TokenSecret { id: id.to_owned(), secret: secret.to_owned() })
    }

    /// The public half.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The stored hash of the secret half.
    pub(crate) fn hash(&self) -> [u8; 32] {
        TokenSecret::digest(&self.secret)
    }

    /// The full token, for its user.
    pub(crate) fn full_token(&self) -> String {
        format!("tg_{}_{}", self.id, self.secret)
    }

    /// The full API key of this id, for its user.
    pub(crate) fn full_key(&self, key_id: &str) -> String {
        format!("tk_{key_id}_{}", self.secret)
    }

    /// The stored digest of a full API key.
    pub(crate) fn digest(key: &str) -> [u8; 32] {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, key.as_bytes()).as_ref());
        hash
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_token_is_lower_case_and_never_the_same() {
        let tokens: BTreeSet<String> = (0..1000).map(|_| TokenSecret::new().unwrap().full_token()).collect();
        assert_eq!(tokens.len(), 1000);
        let mut seen = BTreeSet::new();
        for token in &tokens {
            let [tg, id, secret] = token.split('_').collect::<Vec<_>>().try_into().unwrap();
            assert_eq!((tg, id.len(), secret.len()), ("tg", 12, 32));
            seen.extend(secret.bytes().chain(id.bytes()));
        }
        assert_eq!(seen, ALPHABET.iter().copied().collect(), "every character serves: 32 x 5 bits");
    }
}
