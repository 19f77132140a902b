//! Opens HTTP connections over TCP, TLS and Unix domain sockets.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use super::server_url::{ServerAddress, ServerUrl};

/// Sends requests over one connection.
pub(super) type Sender = SendRequest<Full<Bytes>>;

/// The certificates of a TLS connection.
#[derive(Clone, Debug, Default)]
pub struct TlsTrust {
    /// CA certificates (PEM) to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// Client certificate and private key (PEM), for servers that require them.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Opens connections to one server.
pub struct Connector {
    target: ServerUrl,
    /// The TLS configuration, for https.
    tls: Option<Arc<ClientConfig>>,
}

impl Connector {
    /// Reads the certificates, if the URL needs TLS.
    pub fn new(target: ServerUrl, trust: &TlsTrust) -> Result<Connector> {
        let tls = if target.is_tls() { Some(Arc::new(config(trust)?)) } else { None };
        Ok(Connector { target, tls })
    }

    /// The URL of the server.
    pub fn target(&self) -> &ServerUrl {
        &self.target
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<Sender> {
        match self.target.address() {
            ServerAddress::Unix(path) => {
                handshake(UnixStream::connect(path).await.map_err(|error| self.unreachable(&error))?).await
            }
            ServerAddress::Tcp { host, port, .. } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await;
                let stream = stream.map_err(|error| self.unreachable(&error))?;
                // One small call at a time: Nagle's algorithm would only delay it.
                stream.set_nodelay(true).context("cannot use the connection")?;
                match &self.tls {
                    None => handshake(stream).await,
                    Some(config) => {
                        let name = ServerName::try_from(host.clone());
                        let name = name.map_err(|_| anyhow!("`{host}` is not a valid name for a certificate"))?;
                        let stream = TlsConnector::from(config.clone()).connect(name, stream).await;
                        handshake(stream.map_err(|error| self.untrusted(&error))?).await
                    }
                }
            }
        }
    }

    fn unreachable(&self, error: &Error) -> anyhow::Error {
        let target = &self.target;
        match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::NotFound if error.raw_os_error().is_some() => {
                anyhow!("nothing listens at {target}: is the server running? start one with: tollgate serve")
            }
            ErrorKind::PermissionDenied => anyhow!("cannot connect to {target}: permission denied"),
            _ => anyhow!("cannot connect to {target}: {error}"),
        }
    }

    fn untrusted(&self, error: &Error) -> anyhow::Error {
        let target = &self.target;
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(why)) if format!("{why:?}").contains("CaUsedAsEndEntity") => {
                anyhow!(
                    "the certificate of {target} is a CA certificate (CA:TRUE) and cannot be used by a server: create a CA and a \
                    certificate signed by it, and name the CA with --ca FILE"
                )
            }
            Some(rustls::Error::InvalidCertificate(why)) => {
                anyhow!("the certificate of {target} is not trusted ({why}): name its CA with --ca FILE")
            }
            Some(rustls::Error::InvalidMessage(_)) => {
                anyhow!("{target} does not speak TLS: write http:// for a plain connection")
            }
            _ => anyhow!("no TLS connection to {target}: {error}"),
        }
    }
}

async fn handshake(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Result<Sender> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.context("cannot use the connection")?;
    tokio::spawn(connection); // ends with the sender, which also receives its errors
    Ok(sender)
}

fn config(trust: &TlsTrust) -> Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = builder.with_root_certificates(roots(trust.ca.as_deref())?);
    let mut config = match &trust.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let name = key.display();
            let key = PrivateKeyDer::from_pem_file(key).with_context(|| format!("cannot read a key from {name}"))?;
            let ours = builder.with_client_auth_cert(certificates(certificate)?, key);
            ours.with_context(|| format!("{} and {name} cannot be used", certificate.display()))?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The CA certificates in a file, or those of the system.
fn roots(ca: Option<&Path>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else {
        // Some of the system's certificates may be unreadable; the others suffice.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            bail!("the system has no CA certificates: install ca-certificates, or name one with --ca FILE");
        }
        return Ok(roots);
    };
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.with_context(|| format!("{} holds a certificate that cannot be used", path.display()))?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let name = path.display();
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.with_context(|| format!("cannot read certificates from {name}"))?;
    match certificates.is_empty() {
        true => bail!("{name} holds no certificate: it should be PEM, with BEGIN CERTIFICATE"),
        false => Ok(certificates),
    }
}
