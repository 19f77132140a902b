//! The answer: who is asking, and how that was proven.

use std::net::IpAddr;
use std::sync::Arc;

use tollgate_core::{Attribute, Request};

use crate::CredentialFailure;

/// How an identity was proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProofKind {
    /// Only by the address.
    Address,
    /// By an API key.
    ApiKey,
    /// By a signed token.
    Jwt,
    /// By a user's name and password.
    Basic,
    /// By a client certificate.
    Certificate,
}

impl ProofKind {
    /// The name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            ProofKind::Address => "address",
            ProofKind::ApiKey => "api_key",
            ProofKind::Jwt => "jwt",
            ProofKind::Basic => "basic",
            ProofKind::Certificate => "certificate",
        }
    }
}

/// An identity that was proven. Shared by all requests that prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenIdentity {
    /// How.
    pub proof: ProofKind,
    /// The client, as the directory of clients names it: `user:42`.
    pub client_key: String,
    /// The user.
    pub user_id: Option<String>,
    /// The public id of the API key; never the key itself.
    pub api_key: Option<String>,
    /// The organisation.
    pub org: Option<String>,
    /// The tier.
    pub tier: Option<String>,
    /// Custom attributes with their names, `plan` among them.
    pub custom: Vec<(String, String)>,
}

impl ProvenIdentity {
    /// A client, without attributes.
    pub fn new(proof: ProofKind, client_key: impl Into<String>) -> ProvenIdentity {
        ProvenIdentity {
            proof,
            client_key: client_key.into(),
            user_id: None,
            api_key: None,
            org: None,
            tier: None,
            custom: Vec::new(),
        }
    }
}

/// The client key of an address. IPv4 is written by hand: formatting it would cost more than finding the client.
fn address_key(address: IpAddr) -> String {
    let IpAddr::V4(address) = address else { return format!("{ADDRESS_PREFIX}{address}") };
    let mut key = String::with_capacity(ADDRESS_PREFIX.len() + "255.255.255.255".len());
    key.push_str(ADDRESS_PREFIX);
    for (place, octet) in address.octets().into_iter().enumerate() {
        if place > 0 {
            key.push('.');
        }
        for (unit, is_written) in [(100, octet >= 100), (10, octet >= 10), (1, true)] {
            if is_written {
                key.push(char::from(b'0' + octet / unit % 10));
            }
        }
    }
    key
}

/// Who is asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerIdentity {
    address: Option<IpAddr>,
    /// `ip:192.0.2.1`; nothing without an address.
    address_key: String,
    proven: Option<Arc<ProvenIdentity>>,
    failure: Option<CredentialFailure>,
}

/// The client key of callers without an address: those of a Unix domain socket.
const LOCAL: &str = "unix";
const ADDRESS_PREFIX: &str = "ip:";

impl CallerIdentity {
    pub(crate) fn proven(address: Option<IpAddr>, identity: Arc<ProvenIdentity>) -> CallerIdentity {
        CallerIdentity { proven: Some(identity), ..CallerIdentity::unproven(address, None) }
    }

    pub(crate) fn unproven(address: Option<IpAddr>, failure: Option<CredentialFailure>) -> CallerIdentity {
        let address_key = address.map(address_key).unwrap_or_default();
        CallerIdentity { address, address_key, proven: None, failure }
    }

    /// True if the identity was proven by more than an address.
    pub fn is_verified(&self) -> bool {
        self.proven.is_some()
    }

    /// How the identity was proven.
    pub fn proof(&self) -> ProofKind {
        self.proven.as_ref().map_or(ProofKind::Address, |proven| proven.proof)
    }

    /// The proven identity.
    pub fn identity(&self) -> Option<&ProvenIdentity> {
        self.proven.as_deref()
    }

    /// Why the credential that the caller showed proves nothing; `None` if it showed none.
    pub fn failure(&self) -> Option<CredentialFailure> {
        self.failure
    }

    /// The client's address, behind trusted proxies; `None` behind a Unix domain socket that says nothing.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The address as text.
    pub fn ip(&self) -> Option<&str> {
        self.address_key.strip_prefix(ADDRESS_PREFIX)
    }

    /// The client: the proven one, or the address.
    pub fn client_key(&self) -> &str {
        match &self.proven {
            Some(proven) => &proven.client_key,
            None if self.address_key.is_empty() => LOCAL,
            None => &self.address_key,
        }
    }

    /// The proven user.
    pub fn user_id(&self) -> Option<&str> {
        self.proven.as_ref()?.user_id.as_deref()
    }

    /// The public id of the proven API key.
    pub fn api_key(&self) -> Option<&str> {
        self.proven.as_ref()?.api_key.as_deref()
    }

    /// The proven organisation.
    pub fn org(&self) -> Option<&str> {
        self.proven.as_ref()?.org.as_deref()
    }

    /// The proven tier.
    pub fn tier(&self) -> Option<&str> {
        self.proven.as_ref()?.tier.as_deref()
    }

    /// Proven custom attributes, `plan` among them.
    pub fn custom(&self) -> impl Iterator<Item = (&str, &str)> {
        let custom = self.proven.as_ref().map_or(&[][..], |proven| &proven.custom);
        custom.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The request with the caller's known attributes. Custom ones are in [`CallerIdentity::custom`].
    pub fn describe<'a>(&'a self, mut request: Request<'a>) -> Request<'a> {
        request.set(Attribute::ClientKey, self.client_key());
        let known = [
            (Attribute::UserId, self.user_id()),
            (Attribute::ApiKey, self.api_key()),
            (Attribute::Org, self.org()),
            (Attribute::Tier, self.tier()),
            (Attribute::Ip, self.ip()),
        ];
        for (attribute, value) in known {
            if let Some(value) = value {
                request.set(attribute, value);
            }
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unproven_caller_is_its_address_and_nothing_else() {
        let address = Some(IpAddr::from([192, 0, 2, 1]));
        let caller = CallerIdentity::unproven(address, Some(CredentialFailure::UnknownKey));
        let request = caller.describe(Request::new());
        assert_eq!(
            (caller.client_key(), caller.proof(), caller.is_verified()),
            ("ip:192.0.2.1", ProofKind::Address, false)
        );
        assert_eq!(request.get(Attribute::Ip), Some("192.0.2.1"));
        for attribute in [Attribute::ApiKey, Attribute::UserId, Attribute::Org, Attribute::Tier] {
            assert_eq!(request.get(attribute), None, "{attribute}");
        }
        assert_eq!(CallerIdentity::unproven(None, None).client_key(), "unix");
    }

    #[test]
    fn the_key_of_an_address_is_its_text() {
        for address in ["0.0.0.0", "1.10.100.255", "9.99.199.200", "127.0.0.1", "2001:db8::1", "::ffff:1.2.3.4"] {
            let caller = CallerIdentity::unproven(address.parse().ok(), None);
            assert_eq!(caller.client_key(), format!("ip:{address}"));
        }
    }

    #[test]
    fn a_proven_caller_keeps_its_address() {
        let identity = ProvenIdentity {
            user_id: Some("42".to_owned()),
            custom: vec![("plan".to_owned(), "paid".to_owned())],
            ..ProvenIdentity::new(ProofKind::Jwt, "user:42")
        };
        let caller = CallerIdentity::proven(Some(IpAddr::from([192, 0, 2, 1])), Arc::new(identity));
        let request = caller.describe(Request::new());
        assert_eq!(request.get(Attribute::ClientKey), Some("user:42"));
        assert_eq!((request.get(Attribute::UserId), request.get(Attribute::Ip)), (Some("42"), Some("192.0.2.1")));
        assert_eq!(caller.custom().collect::<Vec<_>>(), [("plan", "paid")]);
    }
}
