//! The target of the load: protocol, address and path.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use crate::error::LoadError;

/// The protocol of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetProtocol {
    /// HTTP/1.1 with keep-alive.
    Http,
    /// The Redis protocol, pipelined.
    Resp,
    /// gRPC over cleartext HTTP/2, with several streams per connection.
    Grpc,
}

/// Protocol, URL scheme, default port and an example URL.
const SCHEMES: [(TargetProtocol, &str, u16, &str); 3] = [
    (TargetProtocol::Http, "http://", 80, "http://127.0.0.1:8080/v1/check"),
    (TargetProtocol::Resp, "redis://", 6379, "redis://127.0.0.1:6379"),
    (TargetProtocol::Grpc, "grpc://", 50051, "grpc://127.0.0.1:50051/tollgate.v1.Tollgate/Check"),
];

/// Where the load goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    protocol: TargetProtocol,
    address: TargetAddress,
    host: String,
    path: String,
}

/// The address of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetAddress {
    /// IP address and port.
    Tcp(SocketAddr),
    /// Path of a Unix domain socket.
    Unix(PathBuf),
}

impl Target {
    /// Parses `http://host:port/path`, `redis://host:port` or `grpc://host:port/package.Service/Method`; a Unix domain
    /// socket is `http://unix:/run/tollgate.sock:/path`. A host name is resolved here, once, to its first address.
    pub fn parse(url: &str) -> Result<Target, LoadError> {
        let known = SCHEMES.iter().find_map(|scheme| Some((scheme, url.strip_prefix(scheme.1)?)));
        let example = known.map_or("http://127.0.0.1:8080/v1/check", |((.., example), _)| example);
        let refuse = |why: &str| Err(LoadError::invalid(format!("{url:?} {why}; write it like {example}")));
        let Some((&(protocol, _, port, _), rest)) = known else {
            return match url.starts_with("https://") || url.starts_with("rediss://") {
                true => refuse("wants TLS, which is not measured here"),
                false => refuse("does not begin with http://, redis:// or grpc://"),
            };
        };
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return refuse("holds a character that a URL cannot");
        }
        if let Some(socket) = rest.strip_prefix("unix:") {
            let (file, path) = socket.split_once(':').unwrap_or((socket, "/"));
            if !file.starts_with('/') || !path.starts_with('/') {
                return refuse("names no socket: it is http://unix:/run/tollgate.sock:/v1/check");
            }
            let address = TargetAddress::Unix(PathBuf::from(file));
            return Ok(Target { protocol, address, host: "localhost".to_owned(), path: path.to_owned() });
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        if host.is_empty() || host.contains('@') {
            return refuse(if host.is_empty() { "names no host" } else { "holds a password: use a header instead" });
        }
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let address = resolve(host, port)?;
        Ok(Target { protocol, address: TargetAddress::Tcp(address), host: host.to_owned(), path })
    }

    /// The protocol of a target.
    pub fn protocol(&self) -> TargetProtocol {
        self.protocol
    }

    /// The address of a target.
    pub fn address(&self) -> &TargetAddress {
        &self.address
    }

    /// The value of the `Host` header.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The path and query.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// `host`, `host:port`, `[::1]:port`.
fn resolve(host: &str, port: u16) -> Result<SocketAddr, LoadError> {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    let full = if has_port { host.to_owned() } else { format!("{host}:{port}") };
    let found = full.to_socket_addrs().map_err(|error| LoadError::invalid(format!("{host}: {error}")))?.next();
    found.ok_or_else(|| LoadError::invalid(format!("{host} has no address")))
}

impl std::fmt::Display for TargetProtocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TargetProtocol::Http => "HTTP",
            TargetProtocol::Resp => "RESP",
            TargetProtocol::Grpc => "gRPC",
        })
    }
}

impl std::fmt::Display for TargetAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TargetAddress::Tcp(address) => address.fmt(f),
            TargetAddress::Unix(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> (String, String, String) {
        let target = Target::parse(url).unwrap();
        (target.address().to_string(), target.host().to_owned(), target.path().to_owned())
    }

    fn parts(address: &str, host: &str, path: &str) -> (String, String, String) {
        (address.to_owned(), host.to_owned(), path.to_owned())
    }

    #[test]
    fn parses_addresses() {
        assert_eq!(parsed("http://127.0.0.1:8080/v1/check"), parts("127.0.0.1:8080", "127.0.0.1:8080", "/v1/check"));
        assert_eq!(parsed("http://127.0.0.1"), parts("127.0.0.1:80", "127.0.0.1", "/"));
        assert_eq!(parsed("http://[::1]:9/?a=b#c"), parts("[::1]:9", "[::1]:9", "/?a=b"));
        assert_eq!(parsed("http://[::1]?a"), parts("[::1]:80", "[::1]", "/?a"));
        assert_eq!(parsed("http://unix:/run/t.sock:/v1/check"), parts("/run/t.sock", "localhost", "/v1/check"));
        assert_eq!(parsed("http://unix:/run/t.sock"), parts("/run/t.sock", "localhost", "/"));
    }

    #[test]
    fn the_scheme_selects_the_protocol() {
        let protocol = |url: &str| Target::parse(url).unwrap().protocol();
        assert_eq!(protocol("http://127.0.0.1"), TargetProtocol::Http);
        assert_eq!(protocol("redis://127.0.0.1"), TargetProtocol::Resp);
        assert_eq!(protocol("grpc://127.0.0.1:1/a.B/C"), TargetProtocol::Grpc);
        assert_eq!(parsed("redis://127.0.0.1"), parts("127.0.0.1:6379", "127.0.0.1", "/"));
        assert_eq!(parsed("grpc://unix:/run/t.sock:/a.B/C"), parts("/run/t.sock", "localhost", "/a.B/C"));
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        let cases = [
            "",
            "127.0.0.1:8080",
            "https://a/",
            "http://",
            "http:///x",
            "http://a b/",
            "http://u:p@a/",
            "http://unix:run",
            "http://127.0.0.1:x/",
            "http://127.0.0.1:99999/",
            "http://a\r\nb/",
            "redis://",
            "rediss://a",
            "redis://:secret@a",
            "grpc://127.0.0.1:x/a.B/C",
        ];
        for url in cases {
            assert!(Target::parse(url).is_err(), "{url:?}");
        }
    }
}
