//! Opens connections: TCP or a Unix domain socket, then TLS where the URL says so.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower_service::Service;

use crate::client_url::{ClientUrl, ConnectTarget};
use crate::config::{ClientConfig, ClientConfigError};

/// Opens connections to one server, whatever the URI of a request says.
#[derive(Clone)]
pub(super) struct ServerConnector {
    target: ConnectTarget,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsConnector>,
}

impl ServerConnector {
    /// `protocols`: what is offered by ALPN.
    #[cfg(feature = "tls")]
    pub(super) fn new(
        url: &ClientUrl,
        config: &ClientConfig,
        protocols: &[&str],
    ) -> Result<ServerConnector, ClientConfigError> {
        let tls = match url.tls {
            true => Some(tls_config(config, protocols)?.into()),
            false => None,
        };
        Ok(ServerConnector { target: url.target.clone(), tls })
    }

    #[cfg(not(feature = "tls"))]
    pub(super) fn new(url: &ClientUrl, _: &ClientConfig, _: &[&str]) -> Result<ServerConnector, ClientConfigError> {
        match url.tls {
            true => Err(ClientConfigError("TLS needs the feature `tls` of tollgate-client".to_owned())),
            false => Ok(ServerConnector { target: url.target.clone() }),
        }
    }

    async fn open(self) -> io::Result<TokioIo<ServerStream>> {
        let ConnectTarget::Tcp { host, port } = &self.target else { return self.open_unix().await };
        let tcp = TcpStream::connect((host.as_str(), *port)).await?;
        tcp.set_nodelay(true)?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let name = rustls::pki_types::ServerName::try_from(host.clone()).map_err(io::Error::other)?;
            let stream = Box::new(tls.connect(name, tcp).await?);
            return Ok(TokioIo::new(ServerStream::Tls(stream)));
        }
        Ok(TokioIo::new(ServerStream::Tcp(tcp)))
    }

    #[cfg(unix)]
    async fn open_unix(self) -> io::Result<TokioIo<ServerStream>> {
        match &self.target {
            ConnectTarget::Unix(path) => {
                Ok(TokioIo::new(ServerStream::Unix(tokio::net::UnixStream::connect(path).await?)))
            }
            ConnectTarget::Tcp { .. } => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    #[cfg(not(unix))]
    async fn open_unix(self) -> io::Result<TokioIo<ServerStream>> {
        Err(io::Error::other("there are no Unix domain sockets on this platform"))
    }
}

#[cfg(feature = "tls")]
fn tls_config(
    config: &ClientConfig,
    protocols: &[&str],
) -> Result<std::sync::Arc<rustls::ClientConfig>, ClientConfigError> {
    let mut tls = match &config.tls {
        Some(tls) => rustls::ClientConfig::clone(tls),
        None => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
            let builder = builder.map_err(|error| ClientConfigError(format!("TLS: {error}")))?;
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    };
    tls.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Ok(std::sync::Arc::new(tls))
}

impl Service<Uri> for ServerConnector {
    type Response = TokioIo<ServerStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<ServerStream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().open())
    }
}

/// A connection to the server.
pub(super) enum ServerStream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

impl Connection for ServerStream {
    fn connected(&self) -> Connected {
        match self {
            #[cfg(feature = "tls")]
            ServerStream::Tls(stream) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                Connected::new().negotiated_h2()
            }
            _ => Connected::new(),
        }
    }
}

macro_rules! on_stream {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            ServerStream::Tcp($stream) => $call,
            #[cfg(unix)]
            ServerStream::Unix($stream) => $call,
            #[cfg(feature = "tls")]
            ServerStream::Tls($stream) => $call,
        }
    };
}

impl AsyncRead for ServerStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        on_stream!(self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
