//! The other end of a connection: its address, and the names of its certificate.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// The other end of a connection, as the socket reports it, or a trusted PROXY header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// The address that counts as one client: for IPv6 the /64. `None` for a Unix domain socket.
    pub address: Option<IpAddr>,
    /// The full address.
    pub whole: Option<IpAddr>,
    /// The names of the client certificate; `None` without one.
    pub certificate: Option<Arc<PeerCertificate>>,
}

/// The subject alternative names of a client certificate that the TLS handshake verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerCertificate {
    /// DNS names, in the order of the certificate.
    pub dns_names: Vec<String>,
    /// URIs, such as `spiffe://example.org/orders`.
    pub uri_names: Vec<String>,
}

impl PeerCertificate {
    /// The names of a certificate that was verified; none if it cannot be read.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> PeerCertificate {
        let Ok(certificate) = EndEntityCert::try_from(certificate) else { return PeerCertificate::default() };
        PeerCertificate {
            dns_names: certificate.valid_dns_names().map(str::to_owned).collect(),
            uri_names: certificate.valid_uri_names().map(str::to_owned).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, SanType};

    use super::*;

    #[test]
    fn the_names_of_a_certificate_are_its_alternative_names() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["orders.example.com".to_owned()]).unwrap();
        params.subject_alt_names.push(SanType::URI("spiffe://example.org/orders".try_into().unwrap()));
        let certificate = params.self_signed(&key).unwrap();
        let names = PeerCertificate::of(certificate.der());
        assert_eq!(names.dns_names, ["orders.example.com"]);
        assert_eq!(names.uri_names, ["spiffe://example.org/orders"]);
        assert_eq!(PeerCertificate::of(&CertificateDer::from(vec![0; 8])), PeerCertificate::default());
    }
}
