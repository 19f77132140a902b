//! Protects against web pages of other origins: a page in an operator's browser reaches loopback addresses too.
//!
//! A page can send requests anywhere, but it can neither forge `Host` nor hide its `Origin`. So a call under an unknown
//! host name is refused (DNS rebinding), and so is a change that a page of another origin requests. The bound address is
//! allowed. A listener on all addresses allows any IP address as `Host`: probes and scrapers use addresses that the process
//! does not know, and a page cannot choose them.

use std::net::IpAddr;

use super::problem::AdminProblem;
use tollgate_net::Address;
use tollgate_web::{Authority, Head};

/// Host names and addresses under which the admin port may be called.
#[derive(Clone, Debug, Default)]
pub struct AllowedHosts {
    allowed: Vec<String>,
    /// The bound address; `None` if any address may lead here.
    bound: Option<IpAddr>,
}

impl AllowedHosts {
    /// These names, besides loopback names and the bound address.
    pub fn new(allowed: &[String], bound: &Address) -> AllowedHosts {
        let bound = match bound {
            Address::Tcp(address) if !address.ip().is_unspecified() => Some(address.ip().to_canonical()),
            Address::Tcp(_) | Address::Unix(_) => None,
        };
        AllowedHosts { allowed: allowed.iter().map(|name| name.to_ascii_lowercase()).collect(), bound }
    }

    /// Refuses calls under an unknown host name.
    pub fn check(&self, head: &Head<'_>) -> Result<(), AdminProblem> {
        // HTTP/1.0 may omit it; browsers never do.
        let Some(host) = head.host else { return Ok(()) };
        match Authority::parse(host) {
            Some(Authority { host, .. }) if self.is_allowed(&host.to_ascii_lowercase()) => Ok(()),
            _ => Err(AdminProblem::new(
                421,
                "host_not_allowed",
                "The admin port is not called by that name; add it to the setting allowed_hosts, or use the address.",
            )),
        }
    }

    fn is_allowed(&self, name: &str) -> bool {
        let literal = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        name == "localhost"
            || name.ends_with(".localhost")
            || literal.parse().is_ok_and(|address| self.is_allowed_address(address))
            || self.allowed.iter().any(|allowed| allowed == name || allowed == literal)
    }

    fn is_allowed_address(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.bound.is_none_or(|bound| bound == address || (bound.is_loopback() && address.is_loopback()))
    }
}

/// Refuses changes that a page of another origin requests.
pub fn check_origin(head: &Head<'_>) -> Result<(), AdminProblem> {
    let same_site = head.sec_fetch_site.is_none_or(|site| matches!(site, b"same-origin" | b"none"));
    let same_origin = head.origin.is_none_or(|origin| {
        let authority = [&b"https://"[..], b"http://"].into_iter().find_map(|scheme| origin.strip_prefix(scheme));
        authority.zip(head.host).is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host))
    });
    match same_site && same_origin {
        true => Ok(()),
        false => Err(AdminProblem::new(403, "other_origin", "Web pages of other origins may change nothing here.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_host_names_are_refused() {
        let hosts =
            AllowedHosts::new(&["Limits.Example.com".to_owned(), "192.0.2.7".to_owned()], &Address::loopback(8090));
        let check = |host: &str| is_accepted(&hosts, host);
        for good in [
            "localhost",
            "LOCALHOST:8090",
            "a.localhost",
            "127.0.0.1:8090",
            "[::1]:8090",
            "[::1]",
            "127.0.0.2",
            "192.0.2.7:80",
            "limits.example.com",
            "limits.example.com:8090",
        ] {
            assert!(check(good), "{good}");
        }
        for bad in [
            "",
            ":8090",
            "evil.example",
            "evil.example:8090",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "limits.example.com.evil",
            "localhost:8090:1",
            "localhost:http",
            "[::1",
            "[::1]x",
            "user@localhost",
            "127.0.0.1:123456",
            "192.0.2.1",
            "[2001:db8::1]:8090",
            "localhost,evil.example",
        ] {
            assert!(!check(bad), "{bad}");
        }
        assert!(hosts.check(&Head::default()).is_ok(), "HTTP/1.0 without one");
    }

    #[test]
    fn the_bound_address_is_allowed() {
        let bound = |address: &str| AllowedHosts::new(&[], &address.parse().unwrap());
        for (address, good, bad) in [
            ("192.0.2.1:8090", "192.0.2.1:8090", "127.0.0.1"),
            ("[::1]:8090", "127.0.0.1", "192.0.2.1"),
            ("[::ffff:192.0.2.1]:8090", "192.0.2.1", "[::1]"),
            ("0.0.0.0:8090", "10.1.2.3:30090", "evil.example"),
            ("[::]:8090", "[2001:db8::1]", "10.1.2.3.evil.example"),
            ("unix:/run/admin.sock", "127.0.0.1", "evil.example"),
        ] {
            assert!(is_accepted(&bound(address), good), "{good} at {address}");
            assert!(!is_accepted(&bound(address), bad), "{bad} at {address}");
        }
    }

    fn is_accepted(hosts: &AllowedHosts, host: &str) -> bool {
        hosts.check(&Head { host: Some(host.as_bytes()), ..Head::default() }).is_ok()
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let check = |origin: Option<&str>, site: Option<&str>| {
            let head = Head {
                host: Some(b"localhost:8090"),
                origin: origin.map(str::as_bytes),
                sec_fetch_site: site.map(str::as_bytes),
                ..Head::default()
            };
            check_origin(&head).is_ok()
        };
        for good in [(None, None), (Some("http://localhost:8090"), Some("same-origin")), (None, Some("none"))] {
            assert!(check(good.0, good.1), "{good:?}");
        }
        for bad in [
            (Some("http://evil.example"), None),
            (Some("null"), None),
            (Some("http://localhost"), None),
            (Some("ftp://localhost:8090"), None),
            (Some("http://localhost:8090"), Some("cross-site")),
            (None, Some("same-site")),
            (None, Some("cross-site")),
        ] {
            assert!(!check(bad.0, bad.1), "{bad:?}");
        }
    }
}
