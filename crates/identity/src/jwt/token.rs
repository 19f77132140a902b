//! The three parts of a token (RFC 7515, compact form), and its header. Nothing of it is trusted yet.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use crate::{CredentialFailure, JwtAlgorithm};

/// Longest token.
pub(super) const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Longest header, encoded.
const HEADER_BYTES_MAX: usize = 2 * 1024;
/// Longest signature, encoded: that of an RSA key of 8192 bits.
const SIGNATURE_BYTES_MAX: usize = 1368;

/// A token in its parts.
#[derive(Debug)]
pub(crate) struct TokenParts<'a> {
    pub(super) algorithm: JwtAlgorithm,
    pub(super) kid: Option<String>,
    /// Header and payload as they were signed.
    pub(super) signed: &'a [u8],
    pub(super) signature: Vec<u8>,
    payload: &'a str,
}

impl<'a> TokenParts<'a> {
    /// True if the text has the form of a token; otherwise another proof may read it.
    pub(super) fn is_token(text: &str) -> bool {
        text.bytes().filter(|byte| *byte == b'.').count() == 2
    }

    /// Splits a token and reads its header.
    pub(crate) fn parse(text: &'a str) -> Result<TokenParts<'a>, CredentialFailure> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(CredentialFailure::TooLong);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(CredentialFailure::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(CredentialFailure::Malformed)?;
        if header.len() > HEADER_BYTES_MAX || signature.len() > SIGNATURE_BYTES_MAX {
            return Err(CredentialFailure::TooLong);
        }
        let header = object(header)?;
        // Extensions that must be understood, and none is.
        if header.contains_key("crit") {
            return Err(CredentialFailure::Malformed);
        }
        let algorithm = header.get("alg").and_then(Value::as_str).and_then(JwtAlgorithm::from_name);
        let kid = match header.get("kid") {
            None => None,
            Some(Value::String(kid)) => Some(kid.clone()),
            Some(_) => return Err(CredentialFailure::Malformed),
        };
        Ok(TokenParts {
            algorithm: algorithm.ok_or(CredentialFailure::WrongAlgorithm)?,
            kid,
            signed: signed.as_bytes(),
            signature: decode(signature)?,
            payload,
        })
    }

    /// The decoded signature.
    pub(crate) fn signature(&self) -> &[u8] {
        &self.signature
    }

    /// The claims. To be read only once the signature is verified.
    pub(super) fn claims(&self) -> Result<Map<String, Value>, CredentialFailure> {
        object(self.payload)
    }
}

fn object(encoded: &str) -> Result<Map<String, Value>, CredentialFailure> {
    serde_json::from_slice(&decode(encoded)?).map_err(|_| CredentialFailure::Malformed)
}

/// Strict: without padding and without spare bits, so that a token has one spelling.
fn decode(encoded: &str) -> Result<Vec<u8>, CredentialFailure> {
    URL_SAFE_NO_PAD.decode(encoded).map_err(|_| CredentialFailure::Malformed)
}
