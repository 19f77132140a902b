//! TLS for listeners: certificate and key from files, read again when they change.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::Stream;

/// The present certificate. Connections that are open keep the one they began with.
#[derive(Debug)]
pub struct Tls {
    current: ArcSwap<ServerConfig>,
}

impl Tls {
    /// Reads certificate chain and key.
    pub fn read(certificate: &Path, key: &Path) -> Result<Tls> {
        Ok(Tls { current: ArcSwap::new(server_config(certificate, key)?) })
    }

    /// Reads them again; what cannot be used leaves the old ones in place.
    pub fn reload(&self, certificate: &Path, key: &Path) -> Result<()> {
        self.current.store(server_config(certificate, key)?);
        Ok(())
    }

    /// Shakes hands, within `patience`. What is no TLS ends here.
    pub async fn accept(&self, stream: Stream, patience: Duration) -> Option<Stream> {
        let acceptor = TlsAcceptor::from(self.current.load_full());
        let shaken = timeout(patience, acceptor.accept(stream)).await;
        Some(Stream::Tls(Box::new(shaken.ok()?.ok()?)))
    }
}

fn server_config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>> {
    let unusable = |what: &str, path: &Path| format!("cannot use {} as {what}", path.display());
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .with_context(|| unusable("tls_cert", certificate))?;
    let secret = PrivateKeyDer::from_pem_file(key).with_context(|| unusable("tls_key", key))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth();
    let mut config = builder
        .with_single_cert(chain, secret)
        .with_context(|| format!("{} and {} do not belong together", certificate.display(), key.display()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
