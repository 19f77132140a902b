//! Addresses to listen on: `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` or `unix:/run/tollgate.sock`.
//!
//! Names other than `localhost` are refused: a resolver's answer would decide who can reach the server. So is a bare
//! `:8080`, which means every interface to some programs and the loopback interface to others.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use tollgate_rules::problem::{ParseError, quote};

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A TCP port; 0 lets the system choose a free one.
    Tcp(SocketAddr),
    /// A Unix domain socket.
    Unix(PathBuf),
}

impl Address {
    /// Longest path of a Unix domain socket that every system takes.
    pub const UNIX_BYTES_MAX: usize = 103;

    /// A port of 127.0.0.1.
    pub const fn loopback(port: u16) -> Self {
        Self::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }

    /// True if only this machine can reach it; a Unix domain socket counts.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// True if the system picks the port, so that two equal addresses are two listeners.
    pub fn is_any_port(&self) -> bool {
        matches!(self, Self::Tcp(address) if address.port() == 0)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Address {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return unix(text, path);
        }
        if let Ok(address) = text.parse() {
            return Ok(Self::Tcp(address));
        }
        match text.rsplit_once(':') {
            Some(("localhost", port)) if is_port(port) => {
                port.parse().map(Self::loopback).map_err(|_| refuse(text, PORTS))
            }
            _ => Err(explain(text)),
        }
    }
}

const FORMS: &str = "write HOST:PORT such as 127.0.0.1:8080 or [::1]:8080, or unix:/run/tollgate.sock";
const PORTS: &str = "a port is a number from 0 to 65535; 0 picks a free one";

fn refuse(text: &str, help: impl Into<String>) -> ParseError {
    ParseError::new(format!("{} is not an address to listen on", quote(text)), help)
}

fn unix(text: &str, path: &str) -> Result<Address, ParseError> {
    if path.is_empty() || path.starts_with('@') || path.starts_with("//") || path.contains('\0') {
        return Err(refuse(text, "a Unix domain socket is named by its path: unix:/run/tollgate.sock"));
    }
    if path.len() > Address::UNIX_BYTES_MAX {
        let help = format!("it is {} bytes long, and sockets take {}", path.len(), Address::UNIX_BYTES_MAX);
        return Err(ParseError::new(format!("the path {} is too long for a socket", quote(path)), help));
    }
    Ok(Address::Unix(PathBuf::from(path)))
}

/// An error with advice for common mistakes.
fn explain(text: &str) -> ParseError {
    if text.is_empty() {
        return ParseError::new("the address is blank", FORMS);
    }
    if let Some((_, rest)) = text.split_once("://") {
        return refuse(text, format!("leave out the scheme: {}", quote(rest.trim_end_matches('/'))));
    }
    if text.starts_with('/') || text.starts_with("./") {
        return refuse(text, format!("for a Unix domain socket write {}", quote(&format!("unix:{text}"))));
    }
    if is_port(text) {
        return refuse(text, format!("a port alone does not say who may reach it: {}", either(text)));
    }
    if text.parse::<IpAddr>().is_ok() {
        let host = if text.contains(':') { format!("[{text}]") } else { text.to_owned() };
        return refuse(text, format!("add a port: `{host}:8080`"));
    }
    match text.rsplit_once(':') {
        Some(("" | "*", port)) if is_port(port) => {
            refuse(text, format!("say which interface is meant: {}", either(port)))
        }
        Some((host, port)) if is_port(port) && port.parse::<u16>().is_ok() => {
            refuse(text, format!("{} is not an IP address; {FORMS}", quote(host)))
        }
        Some((_, port)) if is_port(port) => refuse(text, PORTS),
        _ => refuse(text, FORMS),
    }
}

fn either(port: &str) -> String {
    format!("0.0.0.0:{port} (every machine) or 127.0.0.1:{port} (this machine only)")
}

fn is_port(text: &str) -> bool {
    (1..=6).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_forms_are_parsed_and_shown_again() {
        let cases = [
            ("127.0.0.1:8080", "127.0.0.1:8080", true),
            ("localhost:8080", "127.0.0.1:8080", true),
            ("127.9.9.9:0", "127.9.9.9:0", true),
            ("[::1]:8080", "[::1]:8080", true),
            ("[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]:80", true),
            ("0.0.0.0:8080", "0.0.0.0:8080", false),
            ("[::]:8080", "[::]:8080", false),
            ("192.0.2.1:65535", "192.0.2.1:65535", false),
            ("unix:/run/tollgate.sock", "unix:/run/tollgate.sock", true),
            ("unix:tollgate.sock", "unix:tollgate.sock", true),
        ];
        for (text, shown, is_loopback) in cases {
            let address: Address = text.parse().expect(text);
            assert_eq!((address.to_string().as_str(), address.is_loopback()), (shown, is_loopback), "{text}");
            assert_eq!(shown.parse(), Ok(address), "{text}");
        }
    }

    #[test]
    fn refuses_with_advice() {
        let cases = [
            ("", "write HOST:PORT"),
            (":8080", "0.0.0.0:8080 (every machine) or 127.0.0.1:8080 (this machine only)"),
            ("*:8080", "0.0.0.0:8080 (every machine)"),
            ("8080", "a port alone does not say who may reach it"),
            ("127.0.0.1", "add a port: `127.0.0.1:8080`"),
            ("::1", "add a port: `[::1]:8080`"),
            ("127.0.0.1:99999", "a port is a number from 0 to 65535"),
            ("localhost:99999", "a port is a number from 0 to 65535"),
            ("localhost", "write HOST:PORT"),
            ("example.com:80", "`example.com` is not an IP address"),
            ("127.0.0.1:http", "write HOST:PORT"),
            ("http://127.0.0.1:8080/", "leave out the scheme: `127.0.0.1:8080`"),
            ("/run/tollgate.sock", "write `unix:/run/tollgate.sock`"),
            ("unix:", "named by its path"),
            ("unix:@hidden", "named by its path"),
            ("unix://run/a.sock", "named by its path"),
            (" 127.0.0.1:80", "is not an IP address"),
        ];
        for (text, help) in cases {
            let error = text.parse::<Address>().expect_err(text);
            assert!(error.help.contains(help), "{text}: {error}");
        }
    }

    #[test]
    fn a_socket_path_has_a_bound() {
        let path = |length: usize| format!("unix:{}", "a".repeat(length));
        assert!(path(Address::UNIX_BYTES_MAX).parse::<Address>().is_ok());
        let error = path(100_000).parse::<Address>().unwrap_err();
        assert!(error.to_string().len() < 300, "{error}");
    }
}
