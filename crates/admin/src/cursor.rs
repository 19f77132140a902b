//! Seals the cursors of lists. A cursor of the database may hold a client key, which viewers must not see, and callers must
//! not make up cursors.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::problem::AdminProblem;

/// Seals and opens cursors.
pub struct CursorSealer(Option<RandomizedNonceKey>);

impl CursorSealer {
    /// Keyed by a secret that all nodes share, so that the next page can come from another node.
    pub fn new(secret: &[u8; 32]) -> CursorSealer {
        CursorSealer(RandomizedNonceKey::new(&AES_256_GCM, secret).ok())
    }

    /// Seals a cursor of the list at `path`.
    pub fn seal(&self, path: &str, cursor: &str) -> String {
        let mut bytes = cursor.as_bytes().to_vec();
        let nonce = self.0.as_ref().and_then(|key| key.seal_in_place_append_tag(Aad::from(path), &mut bytes).ok());
        // Sealing fails only for a cursor of many gigabytes; the empty text then opens nothing.
        let sealed = nonce.map(|nonce| [nonce.as_ref().as_slice(), &bytes].concat()).unwrap_or_default();
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// Opens a sealed cursor.
    pub fn open(&self, path: &str, text: &str) -> Result<String, AdminProblem> {
        self.read(path, text).ok_or_else(|| {
            AdminProblem::new(400, "bad_cursor", "Send next_cursor as it came, to the list that it came from.")
        })
    }

    fn read(&self, path: &str, text: &str) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let opened = self.0.as_ref()?.open_in_place(nonce, Aad::from(path), &mut sealed).ok()?;
        String::from_utf8(opened.to_vec()).ok()
    }
}

impl fmt::Debug for CursorSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cursors")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_opens_where_it_came_from_and_shows_nothing() {
        let cursors = CursorSealer::new(&[7; 32]);
        let text = cursors.seal("/v1/clients", "key:abc");
        assert!(!text.contains("abc") && text.bytes().all(|byte| byte.is_ascii_graphic()));
        assert_eq!(cursors.open("/v1/clients", &text).as_deref(), Ok("key:abc"));
        assert_eq!(CursorSealer::new(&[7; 32]).open("/v1/clients", &text).as_deref(), Ok("key:abc"), "another node");
        for (path, text) in
            [("/v1/rules", text.as_str()), ("/v1/clients", ""), ("/v1/clients", "AAAA"), ("/v1/clients", "%")]
        {
            assert_eq!(cursors.open(path, text).unwrap_err().code, "bad_cursor", "{path} {text}");
        }
    }
}
