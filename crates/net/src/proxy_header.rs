//! PROXY protocol, version 2: a load balancer names the client at the start of a connection, before TLS.
//!
//! Only from configured proxies, from which every connection must begin so; to all others these bytes are what they are
//! in HTTP, garbage. Version 1 is not read: its text has no length, and every balancer that writes it can write
//! version 2. Exactly the header is read, so that nothing has to be put back.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;
use tollgate_rules::Cidr;

/// The first twelve bytes.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Longest block of addresses and extensions; balancers send a few hundred bytes.
const BLOCK_BYTES_MAX: usize = 2048;

/// The proxies whose connections begin with a header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyHeaders {
    /// Networks of proxies; a Unix domain socket is trusted if there are any.
    pub proxies: Vec<Cidr>,
}

/// What a header says of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxiedClient {
    /// The connection is the proxy's own: a health check.
    Local,
    /// The client's address.
    Address(IpAddr),
}

impl ProxyHeaders {
    /// True if a connection of this address begins with a header.
    pub fn expects_from(&self, peer: Option<IpAddr>) -> bool {
        let bits = peer.map(|peer| match peer {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits(),
        });
        match bits {
            Some(bits) => self.proxies.iter().any(|network| network.contains(bits)),
            None => !self.proxies.is_empty(),
        }
    }

    /// Reads the header of a connection within `limit`; the address of its client.
    pub async fn read(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        peer: Option<IpAddr>,
        limit: Duration,
    ) -> io::Result<Option<IpAddr>> {
        if !self.expects_from(peer) {
            return Ok(peer);
        }
        let header = timeout(limit, read_header(stream)).await.map_err(|_| io::ErrorKind::TimedOut)??;
        Ok(match header {
            ProxiedClient::Local => peer,
            ProxiedClient::Address(address) => Some(address),
        })
    }
}

async fn read_header(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<ProxiedClient> {
    let mut fixed = [0; 16];
    stream.read_exact(&mut fixed).await?;
    let length = block_length(&fixed).ok_or(io::ErrorKind::InvalidData)?;
    let mut block = vec![0; length];
    stream.read_exact(&mut block).await?;
    parse(&fixed, &block).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The length of the block behind the first 16 bytes of a header; `None` if they are none, or it is too long.
pub fn block_length(fixed: &[u8; 16]) -> Option<usize> {
    let rest = fixed.strip_prefix(&SIGNATURE)?;
    let [_, _, high, low] = rest else { return None };
    Some(usize::from(u16::from_be_bytes([*high, *low]))).filter(|length| *length <= BLOCK_BYTES_MAX)
}

/// Parses a header. `None` refuses the connection: a proxy that cannot name its client must not lend its own address.
pub fn parse(fixed: &[u8; 16], block: &[u8]) -> Option<ProxiedClient> {
    let rest = fixed.strip_prefix(&SIGNATURE)?;
    let [command, family, ..] = rest else { return None };
    match (command, family) {
        (0x20, _) => Some(ProxiedClient::Local),
        // TCP over IPv4: source, destination, two ports.
        (0x21, 0x11) => {
            let (addresses, _) = block.split_first_chunk::<12>()?;
            let source: &[u8; 4] = addresses.first_chunk()?;
            Some(ProxiedClient::Address(Ipv4Addr::from(*source).into()))
        }
        // TCP over IPv6.
        (0x21, 0x21) => {
            let (addresses, _) = block.split_first_chunk::<36>()?;
            let source: &[u8; 16] = addresses.first_chunk()?;
            Some(ProxiedClient::Address(Ipv6Addr::from(*source).to_canonical()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
        let length = u16::try_from(block.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, block].concat()
    }

    fn v4(address: [u8; 4]) -> Vec<u8> {
        header(0x21, 0x11, &[&address[..], &[10, 0, 0, 9], &[0x12, 0x34, 0, 80]].concat())
    }

    async fn read(peer: Option<&str>, mut bytes: &[u8]) -> Result<(Option<String>, usize), io::ErrorKind> {
        let headers = ProxyHeaders { proxies: vec![Cidr::parse("10.0.0.0/8").unwrap()] };
        let peer = peer.map(|peer| peer.parse().unwrap());
        let client = headers.read(&mut bytes, peer, Duration::from_secs(1)).await.map_err(|error| error.kind())?;
        Ok((client.map(|client| client.to_string()), bytes.len()))
    }

    #[tokio::test]
    async fn a_proxy_names_the_client_and_not_a_byte_more_is_read() {
        let request = [v4([192, 0, 2, 1]), b"GET /".to_vec()].concat();
        assert_eq!(read(Some("10.0.0.1"), &request).await, Ok((Some("192.0.2.1".to_owned()), 5)));
        assert_eq!(read(Some("::ffff:10.0.0.1"), &request).await.unwrap().1, 5);
        assert_eq!(read(None, &request).await, Ok((Some("192.0.2.1".to_owned()), 5)), "a Unix domain socket");
        let mut block = [0; 60];
        block[..16].copy_from_slice(&"2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        let client = read(Some("10.0.0.1"), &header(0x21, 0x21, &block)).await;
        assert_eq!(client, Ok((Some("2001:db8::1".to_owned()), 0)), "extensions are passed over");
        block[..16].copy_from_slice(&"::ffff:192.0.2.7".parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(read(Some("10.0.0.1"), &header(0x21, 0x21, &block)).await.unwrap().0.as_deref(), Some("192.0.2.7"));
    }

    #[tokio::test]
    async fn i15_an_untrusted_peer_names_nobody() {
        let forged = v4([192, 0, 2, 1]);
        let untouched = Ok((Some("203.0.113.9".to_owned()), forged.len()));
        assert_eq!(read(Some("203.0.113.9"), &forged).await, untouched, "left for the protocol, which refuses it");
    }

    #[tokio::test]
    async fn i15_local_is_the_proxy_itself_and_all_else_closes_the_connection() {
        assert_eq!(read(Some("10.0.0.1"), &header(0x20, 0, &[])).await, Ok((Some("10.0.0.1".to_owned()), 0)));
        assert_eq!(read(Some("10.0.0.1"), &header(0x20, 0x11, &[7; 40])).await, Ok((Some("10.0.0.1".to_owned()), 0)));
        let mut too_long = header(0x21, 0x11, &[]);
        too_long[14..].copy_from_slice(&[0xff, 0xff]);
        too_long.extend([0; 65_535]);
        let invalid = Err(io::ErrorKind::InvalidData);
        for (bytes, expected) in [
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), invalid.clone()),
            (b"PROXY TCP4 192.0.2.1 10.0.0.9 1 2\r\n".to_vec(), invalid.clone()),
            (too_long, invalid.clone()),
            (header(0x11, 0x11, &[0; 12]), invalid.clone()), // version 1
            (header(0x22, 0x11, &[0; 12]), invalid.clone()), // no such command
            (header(0x21, 0x12, &[0; 12]), invalid.clone()), // UDP
            (header(0x21, 0x00, &[]), invalid.clone()),
            (header(0x21, 0x31, &[0; 216]), invalid.clone()), // Unix
            (header(0x21, 0x11, &[0; 11]), invalid.clone()),
            (header(0x21, 0x21, &[0; 35]), invalid),
            (v4([1, 2, 3, 4])[..20].to_vec(), Err(io::ErrorKind::UnexpectedEof)),
            (Vec::new(), Err(io::ErrorKind::UnexpectedEof)),
        ] {
            assert_eq!(
                read(Some("10.0.0.1"), &bytes).await,
                expected,
                "{}",
                bytes[..bytes.len().min(40)].escape_ascii()
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_that_says_nothing_is_not_waited_for() {
        let (mut silent, _open) = tokio::io::duplex(64);
        let headers = ProxyHeaders { proxies: vec![Cidr::parse("10.0.0.0/8").unwrap()] };
        let peer = Some("10.0.0.1".parse().unwrap());
        let error = headers.read(&mut silent, peer, Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
