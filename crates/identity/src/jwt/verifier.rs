//! Verifies the tokens of one issuer.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Time;

use super::claims::{self, TokenIdentity};
use super::jwks::{JWKS_BYTES_MAX, KeySet, SharedSecrets};
use super::token::{TOKEN_BYTES_MAX, TokenParts};
use super::verified_tokens::{VerifiedToken, VerifiedTokens};
use super::{JwksError, RemoteKeys};
use crate::credential_source::Presented;
use crate::key_file::read_small;
use crate::{CredentialFailure, Evidence, IdentityError, JwtKeySpec, JwtSpec, KeyDigest, ProvenIdentity};

/// Tokens whose verification is remembered.
const TOKENS_MAX: usize = 16 * 1024;

/// Verifies tokens.
pub(crate) struct JwtVerifier {
    spec: JwtSpec,
    keys: TokenKeys,
    verified: VerifiedTokens,
}

enum TokenKeys {
    Fixed(Arc<KeySet>),
    Remote(Arc<RemoteKeys>),
}

/// A token that a request shows.
pub(crate) struct PresentedJwt<'a> {
    text: Cow<'a, str>,
    digest: KeyDigest,
}

impl JwtVerifier {
    /// Reads the keys. Relative names of files start at `folder`.
    pub(crate) fn load(spec: JwtSpec, folder: &Path) -> Result<JwtVerifier, IdentityError> {
        let algorithms = &spec.algorithms;
        let read = |file: &str, keys: &dyn Fn(&[u8]) -> Result<KeySet, JwksError>| {
            let path = folder.join(file);
            let set = keys(&read_small(&path, JWKS_BYTES_MAX)?);
            set.map(Arc::new).map(TokenKeys::Fixed).map_err(|error| {
                IdentityError::new(format!("cannot use {} as keys of tokens: {error}", path.display()))
            })
        };
        let keys = match &spec.keys {
            JwtKeySpec::SecretFile(file) => read(file, &|bytes| KeySet::from_secret(bytes, algorithms))?,
            JwtKeySpec::KeyFile(file) => read(file, &|bytes| KeySet::from_pem(bytes, algorithms))?,
            JwtKeySpec::JwksFile(file) => {
                read(file, &|bytes| KeySet::from_jwks(bytes, algorithms, SharedSecrets::Accepted))?
            }
            JwtKeySpec::JwksUrl { url, refresh } => {
                let refresh = Duration::from_nanos(refresh.nanos());
                TokenKeys::Remote(Arc::new(RemoteKeys::new(url.clone(), refresh, algorithms.clone())))
            }
        };
        Ok(JwtVerifier { spec, keys, verified: VerifiedTokens::new(TOKENS_MAX) })
    }

    /// The keys that must be fetched.
    pub(crate) fn remote_keys(&self) -> Option<&Arc<RemoteKeys>> {
        match &self.keys {
            TokenKeys::Fixed(_) => None,
            TokenKeys::Remote(remote) => Some(remote),
        }
    }

    /// The token of a request; `Ok(None)` if it shows none.
    pub(crate) fn find<'a>(&self, evidence: &Evidence<'a>) -> Result<Option<PresentedJwt<'a>>, CredentialFailure> {
        match self.spec.source.find(evidence) {
            Presented::Nothing => Ok(None),
            Presented::Malformed => Err(CredentialFailure::Malformed),
            Presented::Secret(text) if !TokenParts::is_token(&text) => Ok(None),
            Presented::Secret(text) if text.len() > TOKEN_BYTES_MAX => Err(CredentialFailure::TooLong),
            Presented::Secret(text) => Ok(Some(PresentedJwt { digest: KeyDigest::of(&text), text })),
        }
    }

    /// The identity of a token that was verified before.
    pub(crate) fn recall(&self, token: &PresentedJwt<'_>, now: Time) -> Option<Arc<ProvenIdentity>> {
        let found = self.verified.get(&token.digest)?;
        (found.expires_at > now && found.keys == self.version()).then_some(found.identity)
    }

    /// Verifies a token.
    pub(crate) fn verify(&self, token: &PresentedJwt<'_>, now: Time) -> Result<Arc<ProvenIdentity>, CredentialFailure> {
        let (version, keys) = match &self.keys {
            TokenKeys::Fixed(keys) => (0, keys.clone()),
            TokenKeys::Remote(remote) => remote.current(),
        };
        let parts = TokenParts::parse(&token.text)?;
        self.check_signature(&parts, &keys)?;
        let TokenIdentity { identity, expires_at } = claims::check(&self.spec, &parts.claims()?, now)?;
        let identity = Arc::new(identity);
        self.verified.add(token.digest, VerifiedToken { identity: identity.clone(), expires_at, keys: version });
        Ok(identity)
    }

    fn check_signature(&self, parts: &TokenParts<'_>, keys: &KeySet) -> Result<(), CredentialFailure> {
        if !self.spec.algorithms.contains(&parts.algorithm) {
            return Err(CredentialFailure::WrongAlgorithm);
        }
        let mut candidates = keys.candidates(parts.kid.as_deref(), parts.algorithm).peekable();
        if candidates.peek().is_none() {
            if let TokenKeys::Remote(remote) = &self.keys {
                remote.note_unknown_key();
            }
            return Err(CredentialFailure::UnknownSigningKey);
        }
        match candidates.any(|key| key.verify(parts.algorithm, parts.signed, &parts.signature)) {
            true => Ok(()),
            false => Err(CredentialFailure::BadSignature),
        }
    }

    fn version(&self) -> u64 {
        match &self.keys {
            TokenKeys::Fixed(_) => 0,
            TokenKeys::Remote(remote) => remote.version(),
        }
    }
}
