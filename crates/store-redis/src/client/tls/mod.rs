//! TLS to the store: verified unless the configuration disables it, with a client certificate if there is one.

mod certificate;
mod verify;

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use self::verify::{Checks, Verifier};
use crate::client::config::RedisConfig;

/// Builds the TLS configuration. Reads files: call it on a blocking thread.
pub(crate) fn connector(config: &RedisConfig) -> Result<TlsConnector, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be used: {error}"))?;
    let checks = match (config.insecure_tls, config.skip_hostname) {
        (true, _) => Checks::Nothing,
        (false, true) => Checks::Chain,
        (false, false) => Checks::All,
    };
    let (roots, trusted) = match checks {
        Checks::Nothing => (RootCertStore::empty(), Vec::new()),
        _ => roots(config.ca.as_deref())?,
    };
    let verifier = Arc::new(Verifier { provider, roots, trusted, checks });
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let config = match &config.client_certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let unusable = |path: &Path, why: &dyn std::fmt::Display| format!("cannot use {}: {why}", path.display());
            let chain = certificates(certificate).map_err(|why| unusable(certificate, &why))?;
            let private = PrivateKeyDer::from_pem_file(key).map_err(|why| unusable(key, &why))?;
            builder.with_client_auth_cert(chain, private).map_err(|why| unusable(certificate, &why))?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The authorities in a file, and its certificates; or the authorities of the system.
fn roots(ca: Option<&Path>) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else {
        let system = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(system.certs);
        if roots.is_empty() {
            return Err("the system has no certificate authorities; name a file with `ca`".to_owned());
        }
        return Ok((roots, Vec::new()));
    };
    let unusable = |why: &dyn std::fmt::Display| format!("cannot use {} as `ca`: {why}", path.display());
    let trusted = certificates(path).map_err(|why| unusable(&why))?;
    for certificate in &trusted {
        roots.add(certificate.clone()).map_err(|error| unusable(&error))?;
    }
    Ok((roots, trusted))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())?;
    let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    if certificates.is_empty() { Err("it holds no certificate".to_owned()) } else { Ok(certificates) }
}
