//! Who is asking.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use http::request::Parts;
use smallvec::SmallVec;
use tollgate_core::Attribute;

/// What the application has verified about a caller. Without anything, the address counts.
#[derive(Clone, Debug, Default)]
pub struct CallerAttributes<'a> {
    pub(crate) known: SmallVec<[(Attribute, Cow<'a, str>); 3]>,
    pub(crate) custom: SmallVec<[(Cow<'a, str>, Cow<'a, str>); 2]>,
    pub(crate) namespace: Option<Cow<'a, str>>,
}

impl<'a> CallerAttributes<'a> {
    /// Nothing is known but the address.
    pub fn new() -> CallerAttributes<'a> {
        CallerAttributes::default()
    }

    /// Its API key.
    pub fn api_key(self, key: impl Into<Cow<'a, str>>) -> CallerAttributes<'a> {
        self.with(Attribute::ApiKey, key)
    }

    /// The user.
    pub fn user_id(self, user: impl Into<Cow<'a, str>>) -> CallerAttributes<'a> {
        self.with(Attribute::UserId, user)
    }

    /// The organisation.
    pub fn org(self, org: impl Into<Cow<'a, str>>) -> CallerAttributes<'a> {
        self.with(Attribute::Org, org)
    }

    /// The plan.
    pub fn tier(self, tier: impl Into<Cow<'a, str>>) -> CallerAttributes<'a> {
        self.with(Attribute::Tier, tier)
    }

    /// Any of the attributes. The endpoint is that of the request, whatever is set here.
    pub fn with(mut self, attribute: Attribute, value: impl Into<Cow<'a, str>>) -> CallerAttributes<'a> {
        self.known.push((attribute, value.into()));
        self
    }

    /// An attribute of the application's own rules.
    pub fn attribute(mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) -> CallerAttributes<'a> {
        self.custom.push((name.into(), value.into()));
        self
    }

    /// The namespace whose rules apply.
    pub fn namespace(self, namespace: impl Into<Cow<'a, str>>) -> CallerAttributes<'a> {
        CallerAttributes { namespace: Some(namespace.into()), ..self }
    }
}

/// The other end of the connection, as an extension of the request: for servers that have no extension of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

impl From<SocketAddr> for PeerAddress {
    fn from(address: SocketAddr) -> PeerAddress {
        PeerAddress(address.ip())
    }
}

/// The other end of the connection, if the server says which it is.
pub(crate) fn peer_of(request: &Parts) -> Option<IpAddr> {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::ConnectInfo(address)) =
        request.extensions.get::<axum::extract::ConnectInfo<SocketAddr>>()
    {
        return Some(address.ip());
    }
    request.extensions.get::<PeerAddress>().map(|PeerAddress(address)| *address)
}
