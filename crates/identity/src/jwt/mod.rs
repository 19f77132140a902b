//! JSON Web Tokens: parsed, verified with pinned algorithms, and turned into identities.
//!
//! | file | what |
//! |---|---|
//! | `token` | the three parts of a token, and its header |
//! | `signing_key`, `jwks` | keys: from PEM, a secret, or a JSON Web Key Set |
//! | `remote_keys` | a key set that is fetched and refreshed |
//! | `claims` | what must hold of the payload, and what becomes attributes |
//! | `verified_tokens` | a bounded cache of tokens that were verified |
//! | `verifier` | all of it for one entry of the configuration |

mod claims;
mod jwks;
mod remote_keys;
mod signing_key;
mod token;
mod verified_tokens;
mod verifier;

pub use jwks::JwksError;
pub(crate) use jwks::{KeySet, SharedSecrets};
pub use remote_keys::RemoteKeys;
pub(crate) use token::TokenParts;
pub(crate) use verifier::JwtVerifier;

#[cfg(test)]
mod tests;
