//! Reads the fields of a file that configure identity.

use tollgate_rules::Cidr;
use tollgate_rules::problem::Problems;
use tollgate_rules::read::{FieldValue, MapFields};

use super::certificate::read_certificate;
use super::jwt::read_jwt;
use super::key::{read_api_key, read_basic};
use super::one_of::one_of;
use super::{IdentitySpec, OnUnproven, ProofSpec};
use crate::{ForwardedHeader, ProxyTrust};

/// Most proofs of a file: a request may show all of them.
const PROOFS_MAX: usize = 16;
/// Most networks of proxies.
const PROXIES_MAX: usize = 1000;
/// Most proxies in a row.
const HOPS_MAX: u64 = 32;

const PROOFS: &[&str] = &["api_key", "jwt", "basic", "certificate"];
const EXAMPLE: &str = "- api_key: { header: x-api-key }";

impl IdentitySpec {
    /// Reads the fields named in [`IdentitySpec::FIELDS`]; those that are absent have their defaults.
    pub fn read(fields: &MapFields<'_>, problems: &mut Problems) -> IdentitySpec {
        let mut spec = IdentitySpec::default();
        if let Some(value) = fields.get("identity") {
            spec.proofs = read_proofs(&value, problems);
        }
        spec.trust = read_trust(fields, problems);
        spec.on_unknown = read_unproven(fields.get("on_unknown"), problems);
        spec.on_missing = read_unproven(fields.get("on_missing"), problems);
        spec
    }
}

fn read_proofs(value: &FieldValue<'_>, problems: &mut Problems) -> Vec<ProofSpec> {
    let items: Vec<FieldValue<'_>> = value.items("kinds of proof", problems).collect();
    if items.len() > PROOFS_MAX {
        let message = format!("{} has {} items", value.path, items.len());
        problems.push(value.problem("out-of-range", message).help(format!("write at most {PROOFS_MAX}")));
        return Vec::new();
    }
    items.into_iter().filter_map(|item| read_proof(item, problems)).collect()
}

fn read_proof(value: FieldValue<'_>, problems: &mut Problems) -> Option<ProofSpec> {
    let fields = value.fields(PROOFS, EXAMPLE, problems);
    match one_of(&fields, PROOFS, "one kind of proof per item, such as `- api_key: { header: x-api-key }`", problems)? {
        "api_key" => read_api_key(fields.get("api_key")?, problems).map(ProofSpec::ApiKey),
        "jwt" => read_jwt(fields.get("jwt")?, problems).map(ProofSpec::Jwt),
        "basic" => read_basic(fields.get("basic")?, problems).map(ProofSpec::Basic),
        _ => read_certificate(fields.get("certificate")?, problems).map(ProofSpec::Certificate),
    }
}

fn read_trust(fields: &MapFields<'_>, problems: &mut Problems) -> ProxyTrust {
    let mut proxies = Vec::new();
    if let Some(value) = fields.get("trusted_proxies") {
        for item in value.one_or_more().into_iter().take(PROXIES_MAX) {
            match item.text(problems).map(Cidr::parse) {
                Some(Ok(network)) => proxies.push(network),
                Some(Err(error)) => problems.push(item.fault("bad-network", error)),
                None => {}
            }
        }
    }
    const HEADERS: &[(&str, ForwardedHeader)] =
        &[("x-forwarded-for", ForwardedHeader::XForwardedFor), ("forwarded", ForwardedHeader::Forwarded)];
    let header = fields.get("forwarded").and_then(|value| value.choice(HEADERS, problems)).unwrap_or_default();
    let hops = fields.get("trusted_hops").and_then(|value| value.integer(1..=HOPS_MAX, problems)).unwrap_or(1);
    for name in ["trusted_hops", "forwarded"] {
        if let Some(value) = fields.get(name).filter(|_| fields.get("trusted_proxies").is_none()) {
            let message = format!("{} has no effect without `trusted_proxies`", value.path);
            problems.push(value.problem("unused-field", message).help("name the proxies, or remove the field"));
        }
    }
    let hops = if proxies.is_empty() { 0 } else { usize::try_from(hops).unwrap_or(1) };
    ProxyTrust { proxies, hops, header }
}

fn read_unproven(value: Option<FieldValue<'_>>, problems: &mut Problems) -> OnUnproven {
    const CHOICES: &[(&str, OnUnproven)] = &[("address", OnUnproven::Address), ("refuse", OnUnproven::Refuse)];
    value.and_then(|value| value.choice(CHOICES, problems)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
