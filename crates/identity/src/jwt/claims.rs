//! What must hold of a token's claims, and which of them become attributes.

use serde_json::{Map, Value};
use tollgate_core::Time;

use crate::{ClaimSpec, CredentialFailure, JwtSpec, ProofKind, ProvenIdentity};

/// Longest text of a claim that becomes an attribute.
const VALUE_BYTES_MAX: usize = 1024;

/// An identity, and the time until which the token proves it.
pub(super) struct TokenIdentity {
    pub(super) identity: ProvenIdentity,
    pub(super) expires_at: Time,
}

/// Checks the claims of a token whose signature was verified.
pub(super) fn check(
    spec: &JwtSpec,
    claims: &Map<String, Value>,
    now: Time,
) -> Result<TokenIdentity, CredentialFailure> {
    let expires_at = date(claims, "exp")?.ok_or(CredentialFailure::MissingClaim)?.after(spec.leeway);
    if expires_at <= now {
        return Err(CredentialFailure::Expired);
    }
    if date(claims, "nbf")?.is_some_and(|start| start.before(spec.leeway) > now) {
        return Err(CredentialFailure::NotYetValid);
    }
    if !spec.issuers.is_empty() && !claims.get("iss").is_some_and(|issuer| is_one_of(issuer, &spec.issuers)) {
        return Err(CredentialFailure::WrongIssuer);
    }
    if !audience_fits(claims.get("aud"), &spec.audiences) {
        return Err(CredentialFailure::WrongAudience);
    }
    Ok(TokenIdentity { identity: identity(&spec.claims, claims)?, expires_at })
}

/// A NumericDate: seconds, perhaps with a fraction.
fn date(claims: &Map<String, Value>, name: &str) -> Result<Option<Time>, CredentialFailure> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_u64().or_else(|| {
        // A cast of a float saturates: a date beyond the range is the end of the range.
        value.as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0).map(|seconds| seconds as u64)
    });
    seconds.map(|seconds| Some(Time::from_secs(seconds))).ok_or(CredentialFailure::Malformed)
}

fn is_one_of(value: &Value, accepted: &[String]) -> bool {
    value.as_str().is_some_and(|text| accepted.iter().any(|accepted| accepted == text))
}

/// A token for an audience is refused where none is configured (RFC 7519, 4.1.3).
fn audience_fits(audience: Option<&Value>, accepted: &[String]) -> bool {
    match audience {
        None => accepted.is_empty(),
        Some(Value::Array(audiences)) => audiences.iter().any(|audience| is_one_of(audience, accepted)),
        Some(audience) => is_one_of(audience, accepted),
    }
}

fn identity(wanted: &[ClaimSpec], claims: &Map<String, Value>) -> Result<ProvenIdentity, CredentialFailure> {
    let mut identity = ProvenIdentity::new(ProofKind::Jwt, "");
    for ClaimSpec { attribute, claim } in wanted {
        let Some(value) = lookup(claims, claim).map(text).transpose()?.flatten() else { continue };
        match attribute.as_str() {
            "user_id" => identity.user_id = Some(value),
            "org" => identity.org = Some(value),
            "tier" => identity.tier = Some(value),
            _ => identity.custom.push((attribute.clone(), value)),
        }
    }
    let user = identity.user_id.as_deref().ok_or(CredentialFailure::MissingClaim)?;
    identity.client_key = format!("user:{user}");
    Ok(identity)
}

/// A claim by its name, or by a JSON pointer.
fn lookup<'a>(claims: &'a Map<String, Value>, claim: &str) -> Option<&'a Value> {
    let Some(pointer) = claim.strip_prefix('/') else { return claims.get(claim) };
    let unescaped = |step: &str| step.replace("~1", "/").replace("~0", "~");
    let mut steps = pointer.split('/');
    let first = claims.get(&unescaped(steps.next()?))?;
    steps.try_fold(first, |value, step| match value {
        Value::Object(members) => members.get(&unescaped(step)),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Text, a whole number or a boolean; anything else is no attribute. Text that no attribute can hold spoils the token:
/// without the attribute its caller might escape a rule.
fn text(value: &Value) -> Result<Option<String>, CredentialFailure> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if !number.is_f64() => number.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Null => return Ok(None),
        _ => return Err(CredentialFailure::Malformed),
    };
    match text.len() {
        0 => Ok(None),
        1..=VALUE_BYTES_MAX => Ok(Some(text)),
        _ => Err(CredentialFailure::TooLong),
    }
}
