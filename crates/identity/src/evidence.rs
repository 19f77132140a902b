//! What a request shows of its caller. Borrowed: nothing is copied to look at it.

use std::net::IpAddr;

use http::HeaderMap;

/// A request, as far as it tells who is asking.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The namespace whose rules apply: a key of another namespace is unknown.
    pub namespace: &'a str,
    /// The fields of the head.
    pub headers: &'a HeaderMap,
    /// The query, without its `?`.
    pub query: Option<&'a str>,
    /// The other end of the connection (or what a trusted PROXY header says); `None` for a Unix domain socket.
    pub peer: Option<IpAddr>,
    /// The names of the client certificate that the TLS handshake verified.
    pub certificate: Option<CertificateNames<'a>>,
}

/// The subject alternative names of a verified client certificate.
#[derive(Clone, Copy, Debug, Default)]
pub struct CertificateNames<'a> {
    /// DNS names.
    pub dns: &'a [String],
    /// URIs, such as `spiffe://example.org/orders`.
    pub uri: &'a [String],
}
