//! The configuration: how callers prove who they are, and which proxies may name an address.
//!
//! ```yaml
//! identity:
//!   - jwt: { jwks_file: keys.json, issuer: https://login.example.com, audience: api, algorithms: [RS256] }
//!   - api_key: { header: x-api-key }
//! trusted_proxies: [10.0.0.0/8]
//! ```

mod certificate;
mod jwt;
mod key;
mod one_of;
mod read;

use std::path::{Path, PathBuf};

pub use certificate::{CertificateName, CertificateSpec};
pub use jwt::{ClaimSpec, JwtKeySpec, JwtSpec};
pub use key::{ApiKeySpec, BasicSpec};

use crate::ProxyTrust;

/// How callers are identified. Every value is validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentitySpec {
    /// The proofs that are accepted; of several that a request shows, the first that holds counts.
    pub proofs: Vec<ProofSpec>,
    /// The proxies that may name an address.
    pub trust: ProxyTrust,
    /// What becomes of a caller whose credential proves nothing.
    pub on_unknown: OnUnproven,
    /// What becomes of a caller without a credential.
    pub on_missing: OnUnproven,
}

/// One kind of proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofSpec {
    /// A key that the directory knows.
    ApiKey(ApiKeySpec),
    /// A signed token.
    Jwt(JwtSpec),
    /// A user's name and password.
    Basic(BasicSpec),
    /// A client certificate.
    Certificate(CertificateSpec),
}

/// What becomes of a caller whose identity is not proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnproven {
    /// It is limited by its address.
    #[default]
    Address,
    /// It is refused with 401.
    Refuse,
}

impl Default for IdentitySpec {
    fn default() -> IdentitySpec {
        IdentitySpec {
            proofs: vec![ProofSpec::ApiKey(ApiKeySpec::default())],
            trust: ProxyTrust::default(),
            on_unknown: OnUnproven::default(),
            on_missing: OnUnproven::default(),
        }
    }
}

impl IdentitySpec {
    /// The fields of a file that [`IdentitySpec::read`] reads.
    pub const FIELDS: [&'static str; 6] =
        ["identity", "trusted_proxies", "trusted_hops", "forwarded", "on_unknown", "on_missing"];

    /// The files it refers to, to watch for changes. Relative names start at `folder`.
    pub fn files(&self, folder: &Path) -> Vec<PathBuf> {
        let file = |proof: &ProofSpec| match proof {
            ProofSpec::ApiKey(spec) => spec.file.clone(),
            ProofSpec::Jwt(spec) => spec.keys.file().map(str::to_owned),
            ProofSpec::Basic(spec) => Some(spec.file.clone()),
            ProofSpec::Certificate(_) => None,
        };
        self.proofs.iter().filter_map(file).map(|file| folder.join(file)).collect()
    }
}
