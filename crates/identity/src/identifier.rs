//! The ranked proofs of a configuration, and the answer to "who is asking".

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use http::HeaderName;
use smallvec::SmallVec;
use tollgate_core::{Clock, Time};

use crate::api_key::{ApiKeyVerifier, KeyDirectory};
use crate::basic::BasicVerifier;
use crate::jwt::{JwtVerifier, RemoteKeys};
use crate::{
    CallerIdentity, CertificateSpec, CredentialFailure, CredentialSource, Evidence, IdentityError, IdentitySpec,
    KeyFile, OnUnproven, ProofSpec, ProvenIdentity, ProxyTrust, Unauthenticated, certificate,
};

/// Limits attempts that guess: of a password, or of a signature, whose verification costs the most. It is asked before
/// a secret is checked, and counts by address, so that no client can be locked out by another's guesses elsewhere.
pub trait AttemptThrottle: Send + Sync {
    /// True if the next attempt from this address may be checked.
    fn may_try(&self, address: Option<IpAddr>) -> bool;
    /// An attempt from this address failed.
    fn note_failure(&self, address: Option<IpAddr>);
}

/// What identification needs beside its configuration.
pub struct IdentityContext<'a> {
    /// Where relative names of files start.
    pub folder: &'a Path,
    /// The keys of clients.
    pub keys: Arc<dyn KeyDirectory>,
    /// Its wall time decides what has expired.
    pub clock: Arc<dyn Clock>,
    /// Limits guessing; `None` does not.
    pub throttle: Option<Arc<dyn AttemptThrottle>>,
}

/// Identifies callers. Immutable: a changed configuration or file makes a new one.
pub struct Identifier {
    proofs: Vec<ProofVerifier>,
    trust: ProxyTrust,
    on_unknown: OnUnproven,
    on_missing: OnUnproven,
    challenges: &'static [&'static str],
    credential_fields: Vec<HeaderName>,
    clock: Arc<dyn Clock>,
    throttle: Option<Arc<dyn AttemptThrottle>>,
}

enum ProofVerifier {
    ApiKey(ApiKeyVerifier),
    Jwt(Box<JwtVerifier>),
    Basic(BasicVerifier),
    Certificate(CertificateSpec),
}

/// What one proof says of a request: nothing shown, proven, or why not.
type ProofResult = Result<Option<Arc<ProvenIdentity>>, CredentialFailure>;

impl Identifier {
    /// Reads the files that the configuration names.
    pub fn load(spec: &IdentitySpec, context: IdentityContext<'_>) -> Result<Identifier, IdentityError> {
        let verifier = |proof: &ProofSpec| -> Result<ProofVerifier, IdentityError> {
            Ok(match proof {
                ProofSpec::ApiKey(spec) => {
                    let directory = match &spec.file {
                        Some(file) => Arc::new(KeyFile::load(&context.folder.join(file))?),
                        None => context.keys.clone(),
                    };
                    ProofVerifier::ApiKey(ApiKeyVerifier::new(spec.clone(), directory))
                }
                ProofSpec::Jwt(spec) => ProofVerifier::Jwt(Box::new(JwtVerifier::load(spec.clone(), context.folder)?)),
                ProofSpec::Basic(spec) => ProofVerifier::Basic(BasicVerifier::load(spec, context.folder)?),
                ProofSpec::Certificate(spec) => ProofVerifier::Certificate(*spec),
            })
        };
        Ok(Identifier {
            proofs: spec.proofs.iter().map(verifier).collect::<Result<_, _>>()?,
            trust: spec.trust.clone(),
            on_unknown: spec.on_unknown,
            on_missing: spec.on_missing,
            challenges: challenges(&spec.proofs),
            credential_fields: spec.proofs.iter().filter_map(credential_field).cloned().collect(),
            clock: context.clock,
            throttle: context.throttle,
        })
    }

    /// The client's address, behind trusted proxies.
    pub fn client_address(&self, evidence: &Evidence<'_>) -> Option<IpAddr> {
        let fields = evidence.headers.get_all(self.trust.header.name()).iter();
        let fields: SmallVec<[&[u8]; 4]> = fields.map(|field| field.as_bytes()).collect();
        self.trust.client(evidence.peer, &fields)
    }

    /// True if the connection's other end is a trusted proxy.
    pub fn is_trusted_proxy(&self, peer: Option<IpAddr>) -> bool {
        self.trust.is_trusted(peer)
    }

    /// The header fields in which callers show keys and tokens.
    pub fn credential_fields(&self) -> &[HeaderName] {
        &self.credential_fields
    }

    /// Who is asking: the first proof that holds counts. Without one the caller is its address, or is refused.
    pub fn identify(&self, evidence: &Evidence<'_>) -> Result<CallerIdentity, Unauthenticated> {
        let address = self.client_address(evidence);
        let now = self.clock.wall();
        let mut failure = None;
        for proof in &self.proofs {
            match self.check(proof, evidence, address, now) {
                Ok(Some(identity)) => return Ok(CallerIdentity::proven(address, identity)),
                Ok(None) => {}
                Err(found) => failure = failure.or(Some(found)),
            }
        }
        let otherwise = if failure.is_some() { self.on_unknown } else { self.on_missing };
        match otherwise {
            OnUnproven::Address => Ok(CallerIdentity::unproven(address, failure)),
            OnUnproven::Refuse => Err(Unauthenticated { failure, challenges: self.challenges }),
        }
    }

    /// The key sets that must be fetched: run [`RemoteKeys::follow`] for each, for as long as this is in use.
    pub fn remote_keys(&self) -> impl Iterator<Item = &Arc<RemoteKeys>> {
        self.proofs.iter().filter_map(|proof| match proof {
            ProofVerifier::Jwt(jwt) => jwt.remote_keys(),
            _ => None,
        })
    }

    fn check(&self, proof: &ProofVerifier, evidence: &Evidence<'_>, address: Option<IpAddr>, now: Time) -> ProofResult {
        match proof {
            ProofVerifier::ApiKey(keys) => keys.verify(evidence, now),
            ProofVerifier::Jwt(jwt) => {
                let Some(token) = jwt.find(evidence)? else { return Ok(None) };
                match jwt.recall(&token, now) {
                    Some(identity) => Ok(Some(identity)),
                    None => self.attempt(address, || jwt.verify(&token, now)).map(Some),
                }
            }
            ProofVerifier::Basic(users) => {
                let Some(shown) = BasicVerifier::find(evidence)? else { return Ok(None) };
                self.attempt(address, || users.verify(&shown)).map(Some)
            }
            ProofVerifier::Certificate(spec) => certificate::verify(*spec, evidence),
        }
    }

    /// Checks a secret, unless too many checks failed for this address.
    fn attempt<T>(
        &self,
        address: Option<IpAddr>,
        check: impl FnOnce() -> Result<T, CredentialFailure>,
    ) -> Result<T, CredentialFailure> {
        let Some(throttle) = &self.throttle else { return check() };
        if !throttle.may_try(address) {
            return Err(CredentialFailure::Throttled);
        }
        let checked = check();
        if let Err(CredentialFailure::BadSignature | CredentialFailure::WrongPassword) = checked {
            throttle.note_failure(address);
        }
        checked
    }
}

impl fmt::Debug for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identifier").field("trust", &self.trust).finish_non_exhaustive()
    }
}

fn credential_field(proof: &ProofSpec) -> Option<&HeaderName> {
    let source = match proof {
        ProofSpec::ApiKey(spec) => &spec.source,
        ProofSpec::Jwt(spec) => &spec.source,
        ProofSpec::Basic(_) | ProofSpec::Certificate(_) => return None,
    };
    match source {
        CredentialSource::Header(name) => Some(name),
        CredentialSource::Query(_) | CredentialSource::Cookie(_) => None,
    }
}

/// The values of WWW-Authenticate. A key in a field of its own has no scheme that is registered.
fn challenges(proofs: &[ProofSpec]) -> &'static [&'static str] {
    let is_bearer = |source: &CredentialSource| *source == CredentialSource::Header(http::header::AUTHORIZATION);
    let bearer = proofs.iter().any(|proof| match proof {
        ProofSpec::Jwt(spec) => is_bearer(&spec.source),
        ProofSpec::ApiKey(spec) => is_bearer(&spec.source),
        _ => false,
    });
    let basic = proofs.iter().any(|proof| matches!(proof, ProofSpec::Basic(_)));
    match (bearer, basic) {
        (true, true) => &["Bearer realm=\"api\"", "Basic realm=\"api\", charset=\"UTF-8\""],
        (true, false) => &["Bearer realm=\"api\""],
        (false, true) => &["Basic realm=\"api\", charset=\"UTF-8\""],
        (false, false) => &["ApiKey realm=\"api\""],
    }
}

#[cfg(test)]
mod tests;
