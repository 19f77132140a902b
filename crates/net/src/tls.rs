//! TLS for listeners: certificate and key from files, reloaded when they change. Client certificates, where required,
//! are verified in the handshake and their names after it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use arc_swap::ArcSwap;
use rustls::client::verify_server_name;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{Error, RootCertStore, ServerConfig};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::Stream;

/// The files of one listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate chain, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
    /// Certificate authorities of client certificates, PEM; `None` requests none.
    pub client_ca: Option<PathBuf>,
    /// Names of which a client certificate must have one; any if empty.
    pub client_names: Vec<String>,
}

impl TlsFiles {
    /// Certificate and key, without client certificates.
    pub fn new(certificate: &Path, key: &Path) -> TlsFiles {
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        TlsFiles { certificate, key, client_ca: None, client_names: Vec::new() }
    }

    /// All files, to watch for changes.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_ca).map(PathBuf::as_path)
    }
}

/// The current certificate. Open connections keep the one they started with.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    names: Vec<ServerName<'static>>,
    current: ArcSwap<ServerConfig>,
}

impl Tls {
    /// Reads the files.
    pub fn read(files: TlsFiles) -> Result<Tls> {
        let name = |name: &String| {
            ServerName::try_from(name.clone()).map_err(|_| anyhow!("{name} is not a valid name of a certificate"))
        };
        let names = files.client_names.iter().map(name).collect::<Result<_>>()?;
        Ok(Tls { current: ArcSwap::new(server_config(&files)?), names, files })
    }

    /// Reloads the files; on an error the old certificate stays.
    pub fn reload(&self) -> Result<()> {
        self.current.store(server_config(&self.files)?);
        Ok(())
    }

    /// The files it was read from.
    pub fn files(&self) -> &TlsFiles {
        &self.files
    }

    /// Performs the handshake within `limit`; `None` if it fails or the client certificate has none of the names.
    pub async fn accept(&self, stream: Stream, limit: Duration) -> Option<Stream> {
        let acceptor = TlsAcceptor::from(self.current.load_full());
        let handshaken = timeout(limit, acceptor.accept(stream)).await.ok()?.ok()?;
        let shown = handshaken.get_ref().1.peer_certificates().and_then(<[_]>::first);
        (self.names.is_empty() || shown.is_some_and(|shown| self.has_name(shown)))
            .then(|| Stream::Tls(Box::new(handshaken)))
    }

    fn has_name(&self, certificate: &CertificateDer<'_>) -> bool {
        let Ok(certificate) = ParsedCertificate::try_from(certificate) else { return false };
        self.names.iter().any(|name| verify_server_name(&certificate, name).is_ok())
    }
}

fn server_config(files: &TlsFiles) -> Result<Arc<ServerConfig>> {
    let TlsFiles { certificate, key, client_ca, .. } = files;
    let chain = certificates(certificate, "certificate chain")?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
        pem::Error::Io(error) => unreadable(key, &error),
        pem::Error::NoItemsFound if CertificateDer::from_pem_file(key).is_ok() => {
            anyhow!("{} holds a certificate and no private key: are the two swapped?", key.display())
        }
        error => anyhow::Error::new(error).context(unusable("private key", key)),
    })?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for root in certificates(path, "authorities of clients")? {
                roots.add(root).with_context(|| unusable("authorities of clients", path))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder
                .with_client_cert_verifier(verifier.build().with_context(|| unusable("authorities of clients", path))?)
        }
    };
    let mut config = builder.with_single_cert(chain, secret).map_err(|error| match error {
        Error::InconsistentKeys(_) => anyhow!(
            "{} is not the private key of {}: --tls-cert and --tls-key (or those of the admin or metrics listener) must \
             belong together",
            key.display(),
            certificate.display()
        ),
        error => anyhow::Error::new(error).context(unusable("certificate chain", certificate)),
    })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(path: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|error| match error {
        pem::Error::Io(error) => unreadable(path, &error),
        error => anyhow::Error::new(error).context(unusable(what, path)),
    })?;
    if read.is_empty() {
        match PrivateKeyDer::from_pem_file(path) {
            Ok(_) => bail!("{} holds a private key and no certificate: are the two swapped?", path.display()),
            Err(_) => bail!("{} holds no certificate", path.display()),
        }
    }
    Ok(read)
}

fn unreadable(path: &Path, error: &io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow!("cannot read {}: there is no such file", path.display()),
        _ => anyhow!("cannot read {}: {error}", path.display()),
    }
}

fn unusable(what: &str, path: &Path) -> String {
    format!("cannot use {} as {what}", path.display())
}
