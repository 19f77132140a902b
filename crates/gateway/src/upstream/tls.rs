//! Whose certificates are trusted, the authorities of the system or those of a file; and what the gateway proves itself with.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rustls::client::WantsClientCert;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};

use crate::spec::{ClientCertificate, ServerScheme, UpstreamSpec};

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
        let builder = builder.with_root_certificates(roots.clone());
        let mut config = match &spec.client_certificate {
            None => builder.with_no_client_auth(),
            Some(own) => with_certificate(builder, own)?,
        };
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(Arc::new(config))
    };
    Ok(Some(UpstreamTls { any: config(&["h2", "http/1.1"])?, http1: config(&["http/1.1"])? }))
}

/// The configuration of a gateway that proves itself.
fn with_certificate(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    own: &ClientCertificate,
) -> Result<ClientConfig> {
    let ClientCertificate { chain, key } = own;
    let (chain_path, key_path) = (chain.path.display(), key.path.display());
    let certificates = CertificateDer::pem_slice_iter(&chain.pem).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.with_context(|| format!("cannot use {chain_path} as a certificate"))?;
    if certificates.is_empty() {
        bail!("{chain_path} holds no certificate");
    }
    let key =
        PrivateKeyDer::from_pem_slice(&key.pem).with_context(|| format!("cannot use {key_path} as a private key"))?;
    let config = builder.with_client_auth_cert(certificates, key);
    config.with_context(|| format!("the key in {key_path} is not that of the certificate in {chain_path}"))
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
