//! `Host`, `:authority` and the authority of an absolute target: a host and an optional port.
//!
//! Stricter than RFC 3986. User information, lists and percent-encodings are refused: proxies disagree about which host
//! they name.

use std::net::Ipv6Addr;

/// Most digits of a port.
const PORT_DIGITS_MAX: usize = 5;

/// A host and its port, as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    /// A name, an IPv4 address, or an IPv6 address in brackets.
    pub host: &'a str,
    /// The port, if one was sent.
    pub port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Reads `host`, `host:port`, `[address]` or `[address]:port`.
    pub fn parse(sent: &'a [u8]) -> Option<Authority<'a>> {
        let sent = str::from_utf8(sent).ok()?;
        let end = match sent.strip_prefix('[') {
            Some(rest) => rest.find(']')? + 2,
            None => sent.find(':').unwrap_or(sent.len()),
        };
        let (host, port) = sent.split_at_checked(end)?;
        let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.bytes().all(is_name_byte),
        };
        let port = match port.strip_prefix(':') {
            Some("") => None, // RFC 3986 allows an empty port
            Some(digits) => Some(port_number(digits)?),
            None if port.is_empty() => None,
            None => return None,
        };
        is_host.then_some(Authority { host, port })
    }

    /// True if both name the same host and port; `default` is the port of the scheme.
    pub fn is_same(self, other: Authority<'_>, default: u16) -> bool {
        self.host.eq_ignore_ascii_case(other.host) && self.port.unwrap_or(default) == other.port.unwrap_or(default)
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'~')
}

fn port_number(digits: &str) -> Option<u16> {
    let is_port = digits.len() <= PORT_DIGITS_MAX && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_port.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(sent: &str) -> Option<Authority<'_>> {
        Authority::parse(sent.as_bytes())
    }

    #[test]
    fn reads_names_addresses_and_ports() {
        for (sent, host, port) in [
            ("x", "x", None),
            ("Limits.example.com:8080", "Limits.example.com", Some(8080)),
            ("rate_limit-1~a", "rate_limit-1~a", None),
            ("127.0.0.1:1", "127.0.0.1", Some(1)),
            ("[::1]", "[::1]", None),
            ("[2001:db8::1]:65535", "[2001:db8::1]", Some(65_535)),
            ("x:", "x", None),
        ] {
            assert_eq!(parse(sent), Some(Authority { host, port }), "{sent}");
        }
    }

    #[test]
    fn refuses_ambiguous_hosts() {
        for sent in [
            "",
            ":80",
            "a@b",
            "a:b@c",
            "a,b",
            "a, b",
            "a b",
            "a/b",
            "a\\b",
            "a?b",
            "a#b",
            "a%2eb",
            "a%b",
            "é",
            "a:b",
            "a:+1",
            "a:-1",
            "a: 1",
            "a:1:2",
            "a:65536",
            "a:000080",
            "[::1",
            "[::1]x",
            "[]",
            "[x]",
            "[::1%25eth0]",
            "::1",
            "[127.0.0.1]",
            "\"a\"",
            "a;b",
            "a|b",
            "[a]b]",
            "*",
        ] {
            assert_eq!(parse(sent), None, "{sent:?}");
        }
        assert_eq!(Authority::parse(b"a\0b"), None);
        assert_eq!(Authority::parse(b"\xff"), None);
    }

    #[test]
    fn compares_hosts_without_case_and_ports_with_the_default() {
        let is_same = |one: &str, other: &str| parse(one).unwrap().is_same(parse(other).unwrap(), 80);
        assert!(is_same("x", "X") && is_same("x:80", "x") && is_same("x:", "x:80") && is_same("[::A]", "[::a]:80"));
        assert!(!is_same("x", "y") && !is_same("x:81", "x") && !is_same("x:443", "x"));
    }
}
