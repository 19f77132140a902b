//! The URL of a server behind the gateway.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use tollgate_rules::problem::{ParseError, quote};

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerScheme {
    /// HTTP/1.1.
    Http,
    /// HTTP/2 without TLS, with prior knowledge: gRPC servers.
    H2c,
    /// TLS; HTTP/2 if the server agrees to it.
    Https,
}

/// A server: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UpstreamUrl {
    /// The protocol.
    pub scheme: ServerScheme,
    /// A name, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl UpstreamUrl {
    /// Host and port, as in `Host`.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

const HELP: &str = "write http://HOST:PORT, https://HOST:PORT, or h2c://HOST:PORT for HTTP/2 without TLS";

impl FromStr for UpstreamUrl {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<UpstreamUrl, ParseError> {
        let refuse = |why: &str| ParseError::new(format!("{} {why}", quote(text)), HELP);
        let uri: Uri = text.parse().map_err(|_| refuse("is not a URL"))?;
        let scheme = match uri.scheme_str() {
            Some("http") => ServerScheme::Http,
            Some("https") => ServerScheme::Https,
            Some("h2c") => ServerScheme::H2c,
            Some(_) => return Err(refuse("has a scheme that is not known")),
            None => return Err(refuse("has no scheme")),
        };
        let authority = uri.authority().ok_or_else(|| refuse("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(ParseError::new("the URL of a server has a user", "leave out the user and the password"));
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(ParseError::new(
                format!("{} has a path", quote(text)),
                "name the server alone; `strip_prefix` and `add_prefix` of a route change paths",
            ));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(refuse("has no host"));
        }
        let default = if scheme == ServerScheme::Https { 443 } else { 80 };
        let port = authority.port().map_or(Ok(default), |port| port.as_str().parse());
        let port = port.ok().filter(|port| *port > 0).ok_or_else(|| refuse("has a port that is not one"))?;
        Ok(UpstreamUrl { scheme, host: host.to_owned(), port })
    }
}

impl fmt::Display for UpstreamUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            ServerScheme::Http => "http",
            ServerScheme::H2c => "h2c",
            ServerScheme::Https => "https",
        };
        write!(f, "{scheme}://{}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_schemes_hosts_and_ports() {
        for (text, shown) in [
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("http://api", "http://api:80"),
            ("https://api.example.com/", "https://api.example.com:443"),
            ("h2c://[::1]:50051", "h2c://[::1]:50051"),
        ] {
            assert_eq!(text.parse::<UpstreamUrl>().unwrap().to_string(), shown);
        }
        let wrong =
            ["", "api:3000", "ftp://x", "http://", "http://u:p@x", "http://x/v1", "http://x?a", "http://x:0", "/x"];
        for text in wrong {
            assert!(text.parse::<UpstreamUrl>().is_err(), "{text}");
        }
    }
}
