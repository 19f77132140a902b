//! URLs that messages go to: one spelling, one reading.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use http::Uri;

/// Longest URL.
const URL_BYTES_MAX: usize = 2048;
/// Longest host name.
const HOST_BYTES_MAX: usize = 253;

/// An `https` or `http` URL without user, password and fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundUrl {
    is_tls: bool,
    host: UrlHost,
    port: u16,
    /// With the query.
    path: String,
}

/// The host of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UrlHost {
    /// A name to be resolved, in lower case.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// Why a text is no such URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadUrl(&'static str);

impl fmt::Display for BadUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BadUrl {}

impl FromStr for OutboundUrl {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<OutboundUrl, BadUrl> {
        let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.len() > URL_BYTES_MAX || !is_visible || text.contains(['\\', '#']) {
            return Err(BadUrl("a URL has at most 2048 visible ASCII characters, without `#` and `\\`"));
        }
        let uri: Uri = text.parse().map_err(|_| BadUrl("this is not a URL"))?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(BadUrl("the URL should begin with https://")),
        };
        let authority = uri.authority().ok_or(BadUrl("the URL names no host"))?;
        if authority.as_str().contains('@') {
            return Err(BadUrl("the URL should name no user and no password"));
        }
        let host = host(authority.host())?;
        let port = match authority.as_str().get(authority.host().len()..).unwrap_or_default() {
            "" => {
                if is_tls {
                    443
                } else {
                    80
                }
            }
            port => port
                .strip_prefix(':')
                .and_then(|port| port.parse().ok())
                .filter(|port| *port != 0)
                .ok_or(BadUrl("the port should be a number from 1 to 65535"))?,
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(OutboundUrl { is_tls, host, port, path })
    }
}

/// A name, or an address in its usual spelling. Resolvers also read `127.1`, `2130706433` and `0x7f000001` as addresses;
/// no name of the internet ends in a number.
fn host(text: &str) -> Result<UrlHost, BadUrl> {
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let address = inner.parse::<Ipv6Addr>().map_err(|_| BadUrl("this is not an IPv6 address"))?;
        return Ok(UrlHost::Address(IpAddr::V6(address)));
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(UrlHost::Address(IpAddr::V4(address)));
    }
    let name = text.to_ascii_lowercase();
    let is_label = |label: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(is_letter) && !label.starts_with('-')
    };
    let labels: Vec<&str> = name.strip_suffix('.').unwrap_or(&name).split('.').collect();
    let last = labels.last().copied().unwrap_or_default();
    let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    if name.len() > HOST_BYTES_MAX || !labels.iter().all(|label| is_label(label)) || is_number {
        return Err(BadUrl("the host should be a name, or an address in its usual spelling"));
    }
    Ok(UrlHost::Name(name))
}

impl OutboundUrl {
    /// True for `https`.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The host, as allow-lists name it: in lower case, addresses without brackets.
    pub fn host(&self) -> String {
        match &self.host {
            UrlHost::Name(name) => name.strip_suffix('.').unwrap_or(name).to_owned(),
            UrlHost::Address(address) => address.to_string(),
        }
    }

    /// The same server, with this path behind the URL's own.
    pub fn below(&self, path: &str) -> OutboundUrl {
        let own = self.path.split('?').next().unwrap_or_default().trim_end_matches('/');
        OutboundUrl { path: format!("{own}{path}"), ..self.clone() }
    }

    pub(crate) fn parts(&self) -> (&UrlHost, u16) {
        (&self.host, self.port)
    }

    /// Path and query.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The value of `Host`.
    pub(crate) fn authority(&self) -> String {
        let host = match &self.host {
            UrlHost::Address(IpAddr::V6(address)) => format!("[{address}]"),
            UrlHost::Address(address) => address.to_string(),
            UrlHost::Name(name) => name.clone(),
        };
        let default = if self.is_tls { 443 } else { 80 };
        if self.port == default { host } else { format!("{host}:{}", self.port) }
    }

    /// Scheme, host and port: what may be shown where the path could be a secret.
    pub fn origin(&self) -> String {
        format!("{}://{}", if self.is_tls { "https" } else { "http" }, self.authority())
    }
}

impl fmt::Display for OutboundUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_one_spelling() {
        for (text, shown, host) in [
            ("https://Hooks.Example.com", "https://hooks.example.com/", "hooks.example.com"),
            ("https://hooks.example.com:443/a?b=c", "https://hooks.example.com/a?b=c", "hooks.example.com"),
            ("http://[::1]:8080/x", "http://[::1]:8080/x", "::1"),
            ("http://127.0.0.1:9/", "http://127.0.0.1:9/", "127.0.0.1"),
            ("https://hooks.example.com./", "https://hooks.example.com./", "hooks.example.com"),
        ] {
            let url: OutboundUrl = text.parse().unwrap();
            assert_eq!((url.to_string().as_str(), url.host().as_str()), (shown, host));
        }
    }

    #[test]
    fn paths_are_appended() {
        for (text, below) in [("http://c:4318", "http://c:4318/v1/x"), ("http://c/otlp/?a", "http://c/otlp/v1/x")] {
            assert_eq!(text.parse::<OutboundUrl>().unwrap().below("/v1/x").to_string(), below);
        }
    }

    #[test]
    fn s13_urls_with_two_readings_are_refused() {
        for bad in [
            "",
            "hooks.example.com",
            "//x/",
            "file:///etc/passwd",
            "gopher://x/",
            "ftp://x/",
            "https:///x",
            "https://a@b/",
            "https://a:b@c/",
            "https://b@127.0.0.1/",
            "https://x#y",
            "https://x\\@y/",
            "https://x y/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://127.0.0.1.:80/",
            "http://[::1",
            "http://[::ffff:127.0.0.1%25eth0]/",
            "http://x:0/",
            "http://x:99999/",
            "http://x:/",
            "http://x:8a/",
            "http://-x/",
            "http://x..y/",
            "http://xn--\u{e9}/",
            "http://example.com\r\nHost: x/",
            "http://ex%61mple.com/",
            &format!("https://x/{}", "y".repeat(3000)),
            &format!("https://{}/", "y".repeat(300)),
        ] {
            assert!(bad.parse::<OutboundUrl>().is_err(), "{bad}");
        }
    }
}
