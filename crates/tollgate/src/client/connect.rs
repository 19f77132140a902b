//! From an address to a connection that speaks HTTP.

use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use super::Sender;
use super::target::{Place, Target};

/// Knows the way to one server.
pub struct Connector {
    target: Target,
    /// Whom it trusts, where TLS is spoken.
    tls: Option<Arc<ClientConfig>>,
}

impl Connector {
    /// Reads whom to trust, if that will matter.
    pub fn new(target: Target, ca: Option<&Path>) -> Result<Connector> {
        let tls = if target.is_tls() { Some(Arc::new(config(roots(ca)?)?)) } else { None };
        Ok(Connector { target, tls })
    }

    /// Where it leads.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// A new connection.
    pub async fn connect(&self) -> Result<Sender> {
        match self.target.place() {
            Place::Unix(path) => {
                speak(UnixStream::connect(path).await.map_err(|error| self.unreachable(&error))?).await
            }
            Place::Tcp { host, port, .. } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await;
                let stream = stream.map_err(|error| self.unreachable(&error))?;
                // Small calls, each waited for: nothing is gained by collecting bytes.
                stream.set_nodelay(true).context("cannot use the connection")?;
                match &self.tls {
                    None => speak(stream).await,
                    Some(config) => {
                        let name = ServerName::try_from(host.clone());
                        let name = name.map_err(|_| anyhow!("`{host}` is no name that a certificate could have"))?;
                        let stream = TlsConnector::from(config.clone()).connect(name, stream).await;
                        speak(stream.map_err(|error| self.untrusted(&error))?).await
                    }
                }
            }
        }
    }

    fn unreachable(&self, error: &Error) -> anyhow::Error {
        let target = &self.target;
        match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::NotFound if error.raw_os_error().is_some() => {
                anyhow!("nobody answers at {target}: is it running? start one with: tollgate serve")
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
                    "the certificate of {target} is that of an authority (CA:TRUE) and cannot be a server's: make an authority \
                 and a certificate signed by it, and name the authority with --ca FILE"
                )
            }
            Some(rustls::Error::InvalidCertificate(why)) => {
                anyhow!("the certificate of {target} is not trusted ({why}): name its authority with --ca FILE")
            }
            Some(rustls::Error::InvalidMessage(_)) => {
                anyhow!("{target} does not speak TLS: write http:// if that is meant")
            }
            _ => anyhow!("no TLS connection to {target}: {error}"),
        }
    }
}

async fn speak(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Result<Sender> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.context("cannot use the connection")?;
    tokio::spawn(connection); // ends with the sender; what goes wrong is told to whoever waits for the answer
    Ok(sender)
}

fn config(roots: RootCertStore) -> Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?.with_root_certificates(roots);
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The authority in a file alone, or all that this machine trusts.
fn roots(ca: Option<&Path>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else {
        // Some of a machine's certificates may be unreadable; what matters is whether any is left.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            bail!("this machine lists no authorities to trust: install ca-certificates, or name one with --ca FILE");
        }
        return Ok(roots);
    };
    let name = path.display();
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    for certificate in certificates.with_context(|| format!("cannot read certificates from {name}"))? {
        roots.add(certificate).with_context(|| format!("{name} holds a certificate that cannot be used"))?;
    }
    if roots.is_empty() {
        bail!("{name} holds no certificate: it should be PEM, with BEGIN CERTIFICATE");
    }
    Ok(roots)
}
