//! TLS to the store: verified, unless it was spelled out that it must not be.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;

use crate::RedisConfig;

/// Reads whom to trust. Reads files, so it does not belong on a thread that others wait for.
pub(crate) fn connector(config: &RedisConfig) -> Result<TlsConnector, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be used: {error}"))?;
    let config = if config.insecure_tls {
        let trusting = Arc::new(Trusting { provider });
        builder.dangerous().with_custom_certificate_verifier(trusting).with_no_client_auth()
    } else {
        builder.with_root_certificates(roots(config.ca.as_deref())?).with_no_client_auth()
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The authorities in a file, or those of the system.
fn roots(ca: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else {
        let system = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(system.certs);
        if roots.is_empty() {
            return Err("the system has no certificate authorities; name a file with `ca`".to_owned());
        }
        return Ok(roots);
    };
    let unusable = |why: &dyn std::fmt::Display| format!("cannot use {} as `ca`: {why}", path.display());
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| unusable(&error))?;
    for certificate in certificates {
        roots.add(certificate.map_err(|error| unusable(&error))?).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() { Err(unusable(&"it holds no certificate")) } else { Ok(roots) }
}

/// Believes every certificate; the signatures must still be right.
#[derive(Debug)]
struct Trusting {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
