//! Fuzz targets of this crate, also replayed on their corpora: each takes bytes and panics if an invariant fails.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use tollgate_rules::forwarded;

use crate::JwtAlgorithm;
use crate::jwt::{KeySet, SharedSecrets, TokenParts};

/// A token, and the same bytes as a JSON Web Key Set: a token that is accepted has one spelling.
pub fn jwt(data: &[u8]) {
    let all: Vec<JwtAlgorithm> = JwtAlgorithm::NAMES.iter().map(|(_, algorithm)| *algorithm).collect();
    let _ = KeySet::from_jwks(data, &all, SharedSecrets::Accepted);
    let _ = KeySet::from_pem(data, &all);
    let Ok(text) = str::from_utf8(data) else { return };
    let Ok(parts) = TokenParts::parse(text) else { return };
    let again = URL_SAFE_NO_PAD.encode(parts.signature());
    assert_eq!(text.rsplit('.').next(), Some(again.as_str()), "a token has a second spelling");
    assert_eq!(text.bytes().filter(|byte| *byte == b'.').count(), 2);
}

/// Forwarded: for all that a client sends, the element that its proxy appends to the same field is the last one, or the field
/// is refused.
pub fn forwarded_field(data: &[u8]) {
    for own in [&b"for=192.0.2.77"[..], b"for=\"192.0.2.77\";by=\"[2001:db8::1]:80\""] {
        let joined = [data, b", ", own].concat();
        if let Some(nodes) = forwarded::nodes(&joined) {
            let last = nodes.last().map(|node| node.as_slice());
            assert_eq!(last, Some(&b"192.0.2.77"[..]), "a client swallowed the entry of its proxy");
        }
    }
}
