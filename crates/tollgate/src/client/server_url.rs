//! The URL of a server: `http://HOST:PORT`, `https://HOST:PORT`, `unix:/path`.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hyper::Uri;

/// The URL of a server, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    address: ServerAddress,
    /// Path prefix of the API; empty, or with a leading and without a trailing `/`.
    prefix: String,
    text: String,
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// A TCP address.
    Tcp {
        /// Host name or IP address, without brackets.
        host: String,
        /// The port.
        port: u16,
        /// True for https.
        tls: bool,
    },
    /// A Unix domain socket.
    Unix(PathBuf),
}

impl ServerUrl {
    /// The address of a server.
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Path prefix of the API.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// True for https.
    pub fn is_tls(&self) -> bool {
        matches!(self.address, ServerAddress::Tcp { tls: true, .. })
    }

    /// True if the server is on this machine.
    pub fn is_local(&self) -> bool {
        match &self.address {
            ServerAddress::Unix(_) => true,
            ServerAddress::Tcp { host, .. } => {
                host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            }
        }
    }

    /// The value of the `Host` header.
    pub fn authority(&self) -> String {
        match &self.address {
            ServerAddress::Tcp { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
            ServerAddress::Tcp { host, port, .. } => format!("{host}:{port}"),
            ServerAddress::Unix(_) => "localhost".to_owned(),
        }
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

const WANTED: &str = "write http://HOST:PORT, https://HOST:PORT or unix:/path";

impl FromStr for ServerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<ServerUrl, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match Path::new(path).is_absolute() {
                true => Ok(ServerUrl {
                    address: ServerAddress::Unix(path.into()),
                    prefix: String::new(),
                    text: text.to_owned(),
                }),
                false => Err("the path of a socket begins with /: write unix:/path".to_owned()),
            };
        }
        let uri: Uri = text.parse().map_err(|_| format!("not a URL; {WANTED}"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(WANTED.to_owned()),
        };
        let authority = uri.authority().ok_or(WANTED)?;
        if authority.as_str().contains('@') {
            return Err("a URL is no place for secrets: use --token-file FILE or TOLLGATE_TOKEN".to_owned());
        }
        if uri.query().is_some() || text.contains('#') {
            return Err(format!("leave out what follows ? or #; {WANTED}"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(WANTED.to_owned());
        }
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let prefix = uri.path().trim_end_matches('/').to_owned();
        Ok(ServerUrl {
            address: ServerAddress::Tcp { host, port, tls },
            prefix,
            text: text.trim_end_matches('/').to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_urls() {
        let cases = [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", "", false),
            ("http://localhost:8080/", "localhost:8080", "", false),
            ("https://limits.example", "limits.example:443", "", true),
            ("http://[::1]:8080/inner/", "[::1]:8080", "/inner", false),
            ("unix:/run/tollgate.sock", "localhost", "", false),
            ("unix:///run/tollgate.sock", "localhost", "", false),
        ];
        for (text, authority, prefix, tls) in cases {
            let target: ServerUrl = text.parse().expect(text);
            assert_eq!((target.authority().as_str(), target.prefix(), target.is_tls()), (authority, prefix, tls));
        }
    }

    #[test]
    fn recognises_this_machine() {
        for (text, local) in [
            ("http://127.0.0.1:8090", true),
            ("http://[::1]:8090", true),
            ("https://localhost", true),
            ("unix:/run/tollgate.sock", true),
            ("http://localhost.example", false),
            ("http://10.0.0.1:8090", false),
            ("http://0.0.0.0:8090", false),
        ] {
            assert_eq!(text.parse::<ServerUrl>().unwrap().is_local(), local, "{text}");
        }
    }

    #[test]
    fn rejects_invalid_urls() {
        for (text, message) in [
            ("", "not a URL"),
            ("localhost:8080", "write http://"),
            ("ftp://a", "write http://"),
            ("http://a?b", "leave out"),
            ("http://me:secret@a", "--token-file"),
            ("unix:tollgate.sock", "begins with /"),
            ("http://a b", "not a URL"),
        ] {
            let error = text.parse::<ServerUrl>().expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
