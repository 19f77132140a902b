//! Why a credential proves nothing, and why a configuration cannot be used.

use std::fmt;

/// Why a credential that a request shows proves nothing. Names are for logs and metrics: callers are told less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CredentialFailure {
    /// It has no form that could be checked, or there are several.
    Malformed,
    /// It is longer than any that is accepted.
    TooLong,
    /// No client has this key.
    UnknownKey,
    /// The key was revoked.
    Revoked,
    /// It is no longer valid.
    Expired,
    /// It is not valid yet.
    NotYetValid,
    /// The signature does not match.
    BadSignature,
    /// No key of this id is known.
    UnknownSigningKey,
    /// The token names an algorithm that is not accepted.
    WrongAlgorithm,
    /// The token was issued by another issuer.
    WrongIssuer,
    /// The token was issued for another audience.
    WrongAudience,
    /// The token lacks a claim that is required.
    MissingClaim,
    /// No user has this name and password.
    WrongPassword,
    /// The certificate has no name that identifies a caller.
    NoCertificateName,
    /// Too many attempts failed from this address; this one was not checked.
    Throttled,
}

impl CredentialFailure {
    /// The name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            CredentialFailure::Malformed => "malformed",
            CredentialFailure::TooLong => "too_long",
            CredentialFailure::UnknownKey => "unknown_key",
            CredentialFailure::Revoked => "revoked",
            CredentialFailure::Expired => "expired",
            CredentialFailure::NotYetValid => "not_yet_valid",
            CredentialFailure::BadSignature => "bad_signature",
            CredentialFailure::UnknownSigningKey => "unknown_signing_key",
            CredentialFailure::WrongAlgorithm => "wrong_algorithm",
            CredentialFailure::WrongIssuer => "wrong_issuer",
            CredentialFailure::WrongAudience => "wrong_audience",
            CredentialFailure::MissingClaim => "missing_claim",
            CredentialFailure::WrongPassword => "wrong_password",
            CredentialFailure::NoCertificateName => "no_certificate_name",
            CredentialFailure::Throttled => "throttled",
        }
    }
}

/// The caller must prove who it is: answer 401 with these challenges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unauthenticated {
    /// Why its credential proves nothing; `None` if it showed none.
    pub failure: Option<CredentialFailure>,
    /// The values of WWW-Authenticate.
    pub challenges: &'static [&'static str],
}

impl Unauthenticated {
    /// A message that is safe for callers: it does not tell an unknown key from an expired one.
    pub const fn message(&self) -> &'static str {
        match self.failure {
            None => "this API needs a credential",
            Some(CredentialFailure::Throttled) => "too many failed attempts from this address; try again later",
            Some(_) => "the credential is not valid",
        }
    }
}

/// Why an identity cannot be set up: a file that cannot be read or used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityError(String);

impl IdentityError {
    pub(crate) fn new(message: impl Into<String>) -> IdentityError {
        IdentityError(message.into())
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for IdentityError {}
