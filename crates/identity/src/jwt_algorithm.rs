//! The algorithms of RFC 7518 and RFC 8037 that can be pinned. `none` is not among them.

use aws_lc_rs::hmac::{self, HMAC_SHA256, HMAC_SHA384, HMAC_SHA512};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, VerificationAlgorithm,
};

/// How a token is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JwtAlgorithm {
    /// HMAC with SHA-256.
    Hs256,
    /// HMAC with SHA-384.
    Hs384,
    /// HMAC with SHA-512.
    Hs512,
    /// RSA, PKCS #1, with SHA-256.
    Rs256,
    /// RSA, PKCS #1, with SHA-384.
    Rs384,
    /// RSA, PKCS #1, with SHA-512.
    Rs512,
    /// RSA, PSS, with SHA-256.
    Ps256,
    /// RSA, PSS, with SHA-384.
    Ps384,
    /// RSA, PSS, with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

/// What verifies a signature.
pub(crate) enum Verification {
    SharedSecret(hmac::Algorithm),
    Rsa(&'static RsaParameters),
    Curve(&'static dyn VerificationAlgorithm),
}

impl JwtAlgorithm {
    /// The names in a token's header and in the configuration.
    pub const NAMES: &'static [(&'static str, JwtAlgorithm)] = &[
        ("HS256", JwtAlgorithm::Hs256),
        ("HS384", JwtAlgorithm::Hs384),
        ("HS512", JwtAlgorithm::Hs512),
        ("RS256", JwtAlgorithm::Rs256),
        ("RS384", JwtAlgorithm::Rs384),
        ("RS512", JwtAlgorithm::Rs512),
        ("PS256", JwtAlgorithm::Ps256),
        ("PS384", JwtAlgorithm::Ps384),
        ("PS512", JwtAlgorithm::Ps512),
        ("ES256", JwtAlgorithm::Es256),
        ("ES384", JwtAlgorithm::Es384),
        ("EdDSA", JwtAlgorithm::EdDsa),
    ];

    /// The algorithm of this name, in exactly this spelling.
    pub fn from_name(name: &str) -> Option<JwtAlgorithm> {
        JwtAlgorithm::NAMES.iter().find(|(known, _)| *known == name).map(|(_, algorithm)| *algorithm)
    }

    /// The name in a token's header.
    pub fn name(self) -> &'static str {
        JwtAlgorithm::NAMES.iter().find(|(_, algorithm)| *algorithm == self).map_or("", |(name, _)| name)
    }

    /// True if issuer and gateway share the key.
    pub const fn is_shared_secret(self) -> bool {
        matches!(self, JwtAlgorithm::Hs256 | JwtAlgorithm::Hs384 | JwtAlgorithm::Hs512)
    }

    pub(crate) fn verification(self) -> Verification {
        match self {
            JwtAlgorithm::Hs256 => Verification::SharedSecret(HMAC_SHA256),
            JwtAlgorithm::Hs384 => Verification::SharedSecret(HMAC_SHA384),
            JwtAlgorithm::Hs512 => Verification::SharedSecret(HMAC_SHA512),
            JwtAlgorithm::Rs256 => Verification::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            JwtAlgorithm::Rs384 => Verification::Rsa(&RSA_PKCS1_2048_8192_SHA384),
            JwtAlgorithm::Rs512 => Verification::Rsa(&RSA_PKCS1_2048_8192_SHA512),
            JwtAlgorithm::Ps256 => Verification::Rsa(&RSA_PSS_2048_8192_SHA256),
            JwtAlgorithm::Ps384 => Verification::Rsa(&RSA_PSS_2048_8192_SHA384),
            JwtAlgorithm::Ps512 => Verification::Rsa(&RSA_PSS_2048_8192_SHA512),
            JwtAlgorithm::Es256 => Verification::Curve(&ECDSA_P256_SHA256_FIXED),
            JwtAlgorithm::Es384 => Verification::Curve(&ECDSA_P384_SHA384_FIXED),
            JwtAlgorithm::EdDsa => Verification::Curve(&ED25519),
        }
    }
}
