//! Client certificates: the TLS handshake verified them; a name of theirs identifies the caller.

use std::sync::Arc;

use crate::{CertificateName, CertificateSpec, CredentialFailure, Evidence, ProofKind, ProvenIdentity};

/// Longest name.
const NAME_BYTES_MAX: usize = 1024;

pub(crate) fn verify(
    spec: CertificateSpec,
    evidence: &Evidence<'_>,
) -> Result<Option<Arc<ProvenIdentity>>, CredentialFailure> {
    let Some(names) = evidence.certificate else { return Ok(None) };
    let names = match spec.name {
        CertificateName::Dns => names.dns,
        CertificateName::Uri => names.uri,
    };
    // The first name, in the order of the certificate: its issuer chose it. A wildcard names no one caller.
    let usable = |name: &&String| (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains('*');
    let name = names.iter().find(usable).ok_or(CredentialFailure::NoCertificateName)?;
    let name = match spec.name {
        CertificateName::Dns => name.to_ascii_lowercase(),
        CertificateName::Uri => name.clone(),
    };
    let mut identity = ProvenIdentity::new(ProofKind::Certificate, format!("cert:{name}"));
    identity.custom.push(("certificate".to_owned(), name));
    Ok(Some(Arc::new(identity)))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::CertificateNames;

    #[test]
    fn the_first_name_without_a_wildcard_identifies_the_caller() {
        let headers = HeaderMap::new();
        let dns = ["*.example.com".to_owned(), "Orders.example.com".to_owned()];
        let uri = ["spiffe://example.org/Orders".to_owned()];
        let certificate = Some(CertificateNames { dns: &dns, uri: &uri });
        let evidence = Evidence { namespace: "default", headers: &headers, query: None, peer: None, certificate };
        let key = |name| {
            let found = verify(CertificateSpec { name }, &evidence).unwrap();
            found.map(|identity| identity.client_key.clone())
        };
        assert_eq!(key(CertificateName::Dns).unwrap(), "cert:orders.example.com");
        assert_eq!(key(CertificateName::Uri).unwrap(), "cert:spiffe://example.org/Orders");
        let spec = CertificateSpec { name: CertificateName::Uri };
        assert_eq!(verify(spec, &Evidence { certificate: None, ..evidence }), Ok(None));
        let nameless = Evidence { certificate: Some(CertificateNames::default()), ..evidence };
        assert_eq!(verify(spec, &nameless), Err(CredentialFailure::NoCertificateName));
    }
}
