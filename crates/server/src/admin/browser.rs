//! What keeps other people's web pages out: a page in somebody's browser reaches loopback addresses too.
//!
//! A page can send requests anywhere, but it cannot choose the `Host` of a name it does not own, nor hide that it is a
//! page. So a name that is not ours is refused (a name that was made to point here, DNS rebinding), and so is a change
//! that a page of another origin asks for. An address in `Host` is no name: who has it really went there.

use std::net::IpAddr;

use super::problem::Problem;
use crate::http::Head;

/// Names under which the admin API may be called.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    allowed: Vec<String>,
}

impl Hosts {
    /// These names, beside loopback names and addresses.
    pub fn new(allowed: &[String]) -> Hosts {
        Hosts { allowed: allowed.iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    /// Refuses calls under a name that is not ours.
    pub fn check(&self, head: &Head<'_>) -> Result<(), Problem> {
        // HTTP/1.0 may leave it out, and browsers never do.
        let Some(host) = head.host else { return Ok(()) };
        let name =
            str::from_utf8(host).ok().map(str::to_ascii_lowercase).and_then(|host| name(&host).map(str::to_owned));
        match name {
            Some(name) if self.is_ours(&name) => Ok(()),
            _ => Err(Problem::new(
                403,
                "host_not_allowed",
                "The admin API is not served under that name; add it to the setting allowed_hosts, or use the address.",
            )),
        }
    }

    fn is_ours(&self, name: &str) -> bool {
        let literal = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        name == "localhost"
            || name.ends_with(".localhost")
            || literal.parse::<IpAddr>().is_ok()
            || self.allowed.iter().any(|allowed| allowed == name)
    }
}

/// The name in `name:port`, if the rest is a port.
fn name(host: &str) -> Option<&str> {
    let end = match host.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at_checked(end)?;
    let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    (!name.is_empty() && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))).then_some(name)
}

/// Refuses changes that a page of another origin asks for.
pub fn check_origin(head: &Head<'_>) -> Result<(), Problem> {
    let same_site = head.sec_fetch_site.is_none_or(|site| matches!(site, b"same-origin" | b"none"));
    let same_origin = head.origin.is_none_or(|origin| {
        let authority = [&b"https://"[..], b"http://"].into_iter().find_map(|scheme| origin.strip_prefix(scheme));
        authority.zip(head.host).is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host))
    });
    match same_site && same_origin {
        true => Ok(()),
        false => Err(Problem::new(403, "other_origin", "Web pages of other origins may change nothing here.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_ours_are_refused() {
        let hosts = Hosts::new(&["Limits.Example.com".to_owned()]);
        let check = |host: &str| hosts.check(&Head { host: Some(host.as_bytes()), ..Head::default() }).is_ok();
        for good in [
            "localhost",
            "LOCALHOST:8090",
            "a.localhost",
            "127.0.0.1:8090",
            "[::1]:8090",
            "[::1]",
            "192.0.2.1",
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
        ] {
            assert!(!check(bad), "{bad}");
        }
        assert!(hosts.check(&Head::default()).is_ok(), "HTTP/1.0 without one");
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
