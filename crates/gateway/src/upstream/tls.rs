//! Whose certificates are trusted: the authorities of the system, or those of a file.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::spec::{ServerScheme, UpstreamSpec};

/// How connections to the servers of an upstream are encrypted.
#[derive(Clone)]
pub(crate) struct UpstreamTls {
    /// HTTP/2 if the server agrees to it.
    pub(crate) any: Arc<ClientConfig>,
    /// HTTP/1.1 alone.
    pub(crate) http1: Arc<ClientConfig>,
}

/// The configuration of an upstream; `None` if no server of it has an `https` URL.
pub(crate) fn client_config(spec: &UpstreamSpec) -> Result<Option<UpstreamTls>> {
    if spec.servers.iter().all(|url| url.scheme != ServerScheme::Https) {
        return Ok(None);
    }
    let roots = roots(spec)?;
    let config = |protocols: &[&str]| -> Result<Arc<ClientConfig>> {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?;
        let mut config = builder.with_root_certificates(roots.clone()).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(Arc::new(config))
    };
    Ok(Some(UpstreamTls { any: config(&["h2", "http/1.1"])?, http1: config(&["http/1.1"])? }))
}

fn roots(spec: &UpstreamSpec) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(ca) = &spec.ca else {
        for certificate in rustls_native_certs::load_native_certs().certs {
            let _ = roots.add(certificate); // a broken one of many does no harm
        }
        if roots.is_empty() {
            bail!(
                "the upstream {} has https servers, and this system has no authorities: name some with `ca`",
                spec.name
            );
        }
        return Ok(roots);
    };
    let path = &ca.path;
    let unusable = || format!("cannot use {} as authorities of the upstream {}", path.display(), spec.name);
    for certificate in CertificateDer::pem_slice_iter(&ca.pem) {
        roots.add(certificate.with_context(unusable)?).with_context(unusable)?;
    }
    if roots.is_empty() {
        bail!("{} holds no certificate", path.display());
    }
    Ok(roots)
}
