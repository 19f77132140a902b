//! Who is asking: from a request's head and the connection's peer to a caller whose identity is proven, or to an
//! address.
//!
//! No sockets and no database: keys are found through [`KeyDirectory`], a JWKS is fetched by a closure, and the
//! listener hands in the names of the client certificate. An identity that is not proven never becomes an attribute:
//! such a caller has its address and nothing else, so that inventing keys or tokens gains no bucket.
//!
//! | file | what |
//! |---|---|
//! | `spec/` | the configuration, read from YAML |
//! | `evidence`, `credential_source` | what a request shows, and where it carries a secret |
//! | `identifier` | the ranked proofs, and the answer |
//! | `caller_identity`, `failure` | the answer: a caller, or why it is refused |
//! | `api_key`, `key_file` | keys, found by digest |
//! | `jwt/`, `jwt_algorithm` | tokens, keys, JWKS |
//! | `basic`, `certificate` | passwords, client certificates |
//!
//! Addresses behind trusted proxies are those of [`tollgate_rules::client_address`].

mod api_key;
mod basic;
mod caller_identity;
mod certificate;
mod credential_source;
mod evidence;
mod failure;
#[doc(hidden)]
pub mod fuzzing;
mod identifier;
mod jwt;
mod jwt_algorithm;
mod key_file;
mod spec;

pub use api_key::{DirectoryKey, KeyDigest, KeyDirectory, NoKeys};
pub use caller_identity::{CallerIdentity, ProofKind, ProvenIdentity};
pub use credential_source::CredentialSource;
pub use evidence::{CertificateNames, Evidence};
pub use failure::{CredentialFailure, IdentityError, Unauthenticated};
pub use identifier::{AttemptThrottle, Identifier, IdentityContext};
pub use jwt::{JwksError, RemoteKeys};
pub use jwt_algorithm::JwtAlgorithm;
pub use key_file::KeyFile;
pub use spec::{
    ApiKeySpec, BasicSpec, CertificateName, CertificateSpec, ClaimSpec, IdentitySpec, JwtKeySpec, JwtSpec, OnUnproven,
    ProofSpec,
};
pub use tollgate_rules::client_address::{ForwardedHeader, ProxyTrust};
