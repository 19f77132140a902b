//! One POST: resolve, check, connect to what was checked, send, read the status.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::error::OutboundError;
use crate::networks::Networks;
use crate::url::{OutboundUrl, UrlHost};

/// Most addresses of a host that are looked at; all are checked, the first is called.
const ADDRESSES_MAX: usize = 32;
/// Longest head of a response.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Longest body of a response: it is read, so that the peer is not cut off, and thrown away.
const BODY_BYTES_MAX: usize = 8 << 10;

/// Sends messages.
#[derive(Clone)]
pub struct OutboundClient {
    networks: Networks,
    tls: Arc<ClientConfig>,
}

impl OutboundClient {
    /// A client for these networks that trusts the authorities of the system.
    pub fn new(networks: Networks) -> Result<OutboundClient, rustls::Error> {
        let mut roots = RootCertStore::empty();
        // Some of the system's certificates may be unreadable; the others suffice. Without any, no https URL is reached.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        OutboundClient::trusting(networks, roots)
    }

    /// A client that trusts these authorities.
    pub fn trusting(networks: Networks, roots: RootCertStore) -> Result<OutboundClient, rustls::Error> {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?;
        let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(OutboundClient { networks, tls: Arc::new(tls) })
    }

    /// True if a URL may be called as far as its text says; names are resolved, and judged again, for every message.
    pub fn check(&self, url: &OutboundUrl) -> Result<(), OutboundError> {
        if self.networks == Networks::Public && !url.is_tls() {
            return Err(OutboundError::NoTls);
        }
        match url.parts() {
            (UrlHost::Address(address), _) if !self.networks.permit(*address) => {
                Err(OutboundError::ForbiddenAddress(*address))
            }
            _ => Ok(()),
        }
    }

    /// Sends a message and returns the status of the response, whatever it is; redirects are not followed.
    pub async fn post(
        &self,
        url: &OutboundUrl,
        headers: &HeaderMap,
        body: Bytes,
        within: Duration,
    ) -> Result<StatusCode, OutboundError> {
        self.check(url)?;
        timeout(within, self.send(url, headers, body)).await.unwrap_or(Err(OutboundError::TimedOut))
    }

    async fn send(&self, url: &OutboundUrl, headers: &HeaderMap, body: Bytes) -> Result<StatusCode, OutboundError> {
        let address = self.resolve(url).await?;
        let tcp = TcpStream::connect(address).await.map_err(OutboundError::Unreachable)?;
        if !url.is_tls() {
            return exchange(tcp, url, headers, body).await;
        }
        let name = match url.parts() {
            (UrlHost::Address(address), _) => ServerName::from(*address),
            (UrlHost::Name(_), _) => ServerName::try_from(url.host())
                .map_err(|_| OutboundError::Protocol("the host cannot be in a certificate".to_owned()))?,
        };
        let tls = TlsConnector::from(self.tls.clone()).connect(name, tcp).await.map_err(OutboundError::Unreachable)?;
        exchange(tls, url, headers, body).await
    }

    /// The address to connect to. A host with one forbidden address is refused, whatever its others are: the next answer
    /// of its name server may be that one.
    async fn resolve(&self, url: &OutboundUrl) -> Result<SocketAddr, OutboundError> {
        let (host, port) = url.parts();
        let addresses: Vec<SocketAddr> = match host {
            UrlHost::Address(address) => vec![SocketAddr::new(*address, port)],
            UrlHost::Name(name) => {
                let found = lookup_host((name.as_str(), port)).await.map_err(OutboundError::Unresolved)?;
                found.take(ADDRESSES_MAX + 1).collect()
            }
        };
        self.choose(&addresses)
    }

    fn choose(&self, addresses: &[SocketAddr]) -> Result<SocketAddr, OutboundError> {
        let unresolved = |text: &'static str| OutboundError::Unresolved(io::Error::other(text));
        if addresses.len() > ADDRESSES_MAX {
            return Err(unresolved("it has too many addresses"));
        }
        let forbidden = addresses.iter().map(SocketAddr::ip).find(|address: &IpAddr| !self.networks.permit(*address));
        match (forbidden, addresses.first()) {
            (Some(address), _) => Err(OutboundError::ForbiddenAddress(address)),
            (None, Some(first)) => Ok(*first),
            (None, None) => Err(unresolved("it has no address")),
        }
    }
}

impl fmt::Debug for OutboundClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboundClient").field("networks", &self.networks).finish_non_exhaustive()
    }
}

/// Ends the task of a connection with the exchange.
struct RunningConnection(JoinHandle<()>);

impl Drop for RunningConnection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    url: &OutboundUrl,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<StatusCode, OutboundError> {
    let failed = |error: &dyn fmt::Display| OutboundError::Protocol(error.to_string());
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES_MAX).max_headers(100);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    let _running = RunningConnection(tokio::spawn(async move {
        let _ = connection.await; // the exchange has the error
    }));
    let mut request = Request::post(url.path()).body(Full::new(body)).map_err(|error| failed(&error))?;
    *request.headers_mut() = headers.clone();
    let host = HeaderValue::from_str(&url.authority()).map_err(|error| failed(&error))?;
    request.headers_mut().insert(header::HOST, host);
    request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
    let status = response.status();
    let _ = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await; // the status is the answer
    Ok(status)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn client(networks: Networks) -> OutboundClient {
        OutboundClient::trusting(networks, RootCertStore::empty()).unwrap()
    }

    /// Serves one connection with this response, and returns what was sent.
    async fn serve_once(response: &'static [u8]) -> (OutboundUrl, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook?a=b", listener.local_addr().unwrap()).parse().unwrap();
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut read = Vec::new();
            let mut part = [0; 1024];
            while !read.ends_with(b"hello") {
                let count = stream.read(&mut part).await.unwrap();
                assert!(count > 0, "the caller left");
                read.extend(&part[..count]);
            }
            stream.write_all(response).await.unwrap();
            String::from_utf8(read).unwrap()
        });
        (url, served)
    }

    #[tokio::test]
    async fn sends_a_message_and_returns_the_status() {
        let (url, served) = serve_once(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"))]);
        let status = client(Networks::Any).post(&url, &headers, Bytes::from("hello"), SOON).await.unwrap();
        assert_eq!(status, 204);
        let sent = served.await.unwrap();
        assert!(sent.starts_with("POST /hook?a=b HTTP/1.1\r\n") && sent.contains("content-length: 5\r\n"), "{sent}");
    }

    #[tokio::test]
    async fn s13_redirects_are_not_followed_and_long_bodies_not_read_to_the_end() {
        let (url, _served) =
            serve_once(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n").await;
        let post = |url: OutboundUrl| async move {
            client(Networks::Any).post(&url, &HeaderMap::new(), Bytes::from("hello"), SOON).await
        };
        assert_eq!(post(url).await.unwrap(), 302);
        static LONG: [u8; 100_000] = {
            let mut long = [b'x'; 100_000];
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9000000000\r\n\r\n";
            let mut at = 0;
            while at < head.len() {
                long[at] = head[at];
                at += 1;
            }
            long
        };
        let (url, _served) = serve_once(&LONG).await;
        assert_eq!(post(url).await.unwrap(), 200);
    }

    #[tokio::test]
    async fn s13_forbidden_addresses_are_never_called() {
        let public = client(Networks::Public);
        let post = |text: &'static str| {
            let (public, url) = (public.clone(), text.parse::<OutboundUrl>().unwrap());
            async move { public.post(&url, &HeaderMap::new(), Bytes::new(), SOON).await.unwrap_err() }
        };
        for text in
            ["https://127.0.0.1/", "https://[::ffff:127.0.0.1]/", "https://169.254.169.254/", "https://0.0.0.0/"]
        {
            assert!(matches!(post(text).await, OutboundError::ForbiddenAddress(_)), "{text}");
        }
        assert!(matches!(post("https://localhost/").await, OutboundError::ForbiddenAddress(_)), "after resolution");
        assert!(matches!(post("http://1.1.1.1/").await, OutboundError::NoTls));
    }

    #[test]
    fn s13_one_forbidden_address_of_several_is_enough() {
        let at = |text: &str| SocketAddr::new(text.parse().unwrap(), 443);
        let public = client(Networks::Public);
        assert_eq!(public.choose(&[at("1.1.1.1"), at("8.8.8.8")]).unwrap(), at("1.1.1.1"));
        let mixed = public.choose(&[at("1.1.1.1"), at("10.0.0.1")]);
        assert!(matches!(mixed, Err(OutboundError::ForbiddenAddress(_))));
        assert!(matches!(public.choose(&[]), Err(OutboundError::Unresolved(_))));
        assert!(matches!(public.choose(&[at("1.1.1.1"); 33]), Err(OutboundError::Unresolved(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_says_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let outcome = client(Networks::Any).post(&url, &HeaderMap::new(), Bytes::new(), SOON).await;
        assert!(matches!(outcome, Err(OutboundError::TimedOut)), "{outcome:?}");
    }
}
