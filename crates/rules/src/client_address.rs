//! The client's address: X-Forwarded-For or Forwarded, read from the right, for as long as each entry was added by a
//! trusted proxy.
//!
//! Each proxy appends the address of its own peer, so the client controls everything but the right end. An entry counts
//! if the entry after it (for the last entry: the connection) is in `trusted_proxies`, and at most `trusted_hops`
//! entries count. An entry that is not an address ends the walk: the proxy that added it then counts as the client.
//! Only the configured header field is read: with two, a client could supply the one that its proxy does not write.

use std::net::{IpAddr, Ipv6Addr};

use crate::address::{Cidr, parse_ip};
use crate::forwarded;
use smallvec::SmallVec;

/// The header field in which trusted proxies note their peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For: client, proxy`.
    #[default]
    XForwardedFor,
    /// `Forwarded: for=client, for=proxy` (RFC 7239).
    Forwarded,
}

impl ForwardedHeader {
    /// The name of the field, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            ForwardedHeader::XForwardedFor => "x-forwarded-for",
            ForwardedHeader::Forwarded => "forwarded",
        }
    }
}

/// The proxies whose entries are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyTrust {
    /// Networks of proxies.
    pub proxies: Vec<Cidr>,
    /// Most entries that count.
    pub hops: usize,
    /// The header field that the proxies write.
    pub header: ForwardedHeader,
}

impl ProxyTrust {
    /// The client's address. `peer` is the other end of the connection: `None` for a Unix domain socket, which is
    /// trusted because file permissions control who may connect. `fields` are the fields of [`ProxyTrust::header`] in
    /// order.
    pub fn client(&self, peer: Option<IpAddr>, fields: &[&[u8]]) -> Option<IpAddr> {
        let peer = peer.map(|peer| peer.to_canonical());
        if fields.is_empty() || !self.is_trusted(peer) {
            return peer;
        }
        match self.header {
            ForwardedHeader::XForwardedFor => {
                let entries = fields.iter().rev().flat_map(|field| field.rsplit(|byte| *byte == b','));
                self.walk(peer, entries.map(|entry| address(entry.trim_ascii())))
            }
            ForwardedHeader::Forwarded => {
                let parsed = |field: &&[u8]| match forwarded::nodes(field) {
                    Some(nodes) => nodes.into_iter().map(|node| address(&node)).rev().collect(),
                    // A field that cannot be read is one entry that is no address.
                    None => SmallVec::<[Option<IpAddr>; 4]>::from_elem(None, 1),
                };
                self.walk(peer, fields.iter().rev().flat_map(parsed))
            }
        }
    }

    /// True if entries are trusted from this address; `None` is a Unix domain socket.
    pub fn is_trusted(&self, address: Option<IpAddr>) -> bool {
        let bits = address.map(|address| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits(),
        });
        self.hops > 0 && bits.is_none_or(|bits| self.proxies.iter().any(|network| network.contains(bits)))
    }

    fn walk(&self, peer: Option<IpAddr>, entries: impl Iterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
        let mut client = peer;
        for entry in entries.take(self.hops) {
            match entry {
                Some(address) if self.is_trusted(client) => client = Some(address),
                _ => break,
            }
        }
        client
    }
}

fn address(entry: &[u8]) -> Option<IpAddr> {
    let bits = str::from_utf8(entry).ok().and_then(parse_ip)?;
    Some(Ipv6Addr::from_bits(bits).to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trust: &ProxyTrust, peer: &str, fields: &[&str]) -> String {
        let fields: Vec<&[u8]> = fields.iter().map(|field| field.as_bytes()).collect();
        let peer = (peer != "unix").then(|| peer.parse::<IpAddr>().unwrap());
        trust.client(peer, &fields).map_or("none".to_owned(), |address| address.to_string())
    }

    fn trust(proxies: &[&str], hops: usize) -> ProxyTrust {
        ProxyTrust {
            proxies: proxies.iter().map(|text| Cidr::parse(text).unwrap()).collect(),
            hops,
            ..ProxyTrust::default()
        }
    }

    #[test]
    fn i01_only_a_trusted_peer_sets_the_client_address() {
        let local = trust(&["127.0.0.0/8", "::1"], 1);
        assert_eq!(client(&local, "203.0.113.9", &["1.2.3.4"]), "203.0.113.9");
        assert_eq!(client(&local, "2001:db8::1", &["1.2.3.4"]), "2001:db8::1");
        assert_eq!(client(&trust(&["127.0.0.0/8"], 0), "127.0.0.1", &["1.2.3.4"]), "127.0.0.1");
        assert_eq!(client(&trust(&[], 1), "127.0.0.1", &["1.2.3.4"]), "127.0.0.1");
        for (peer, expected) in [("127.0.0.1", "1.2.3.4"), ("::1", "1.2.3.4"), ("unix", "1.2.3.4")] {
            assert_eq!(client(&local, peer, &["1.2.3.4"]), expected, "{peer}");
        }
        assert_eq!(client(&local, "127.0.0.1", &[]), "127.0.0.1");
        assert_eq!(client(&local, "unix", &[]), "none");
    }

    #[test]
    fn i02_the_first_untrusted_entry_from_the_right_is_the_client() {
        let one = trust(&["127.0.0.0/8"], 1);
        assert_eq!(client(&one, "127.0.0.1", &["9.9.9.9, 8.8.8.8"]), "8.8.8.8");
        assert_eq!(client(&one, "127.0.0.1", &["9.9.9.9", "8.8.8.8"]), "8.8.8.8", "two fields are one list");
        let chain = trust(&["127.0.0.1", "10.0.0.0/8"], 3);
        assert_eq!(client(&chain, "127.0.0.1", &["6.6.6.6, 9.9.9.9, 10.0.0.7"]), "9.9.9.9");
        assert_eq!(client(&chain, "127.0.0.1", &["6.6.6.6, 9.9.9.9"]), "9.9.9.9", "an outer proxy was bypassed");
        assert_eq!(client(&chain, "127.0.0.1", &["9.9.9.9, 10.1.1.1, 10.2.2.2, 10.3.3.3"]), "10.1.1.1");
        let everything = trust(&["0.0.0.0/0", "::/0"], 2);
        assert_eq!(client(&everything, "192.0.2.1", &["6.6.6.6, 9.9.9.9, 8.8.8.8"]), "9.9.9.9", "at most two hops");
    }

    #[test]
    fn i04_i07_i09_spellings_are_normalized_and_an_invalid_entry_ends_the_walk() {
        let chain = trust(&["127.0.0.1", "10.0.0.0/8"], 4);
        let cases = [
            ("1.2.3.4:8080", "1.2.3.4"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("fe80::1%eth0", "fe80::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("::ffff:c000:201", "192.0.2.1"),
            ("1.2.3.4, unknown", "127.0.0.1"),
            ("1.2.3.4, unknown, 10.0.0.1", "10.0.0.1"),
            (", ,", "127.0.0.1"),
            ("1.2.3.4, ", "127.0.0.1"),
            ("", "127.0.0.1"),
            ("\"1.2.3.4\"", "127.0.0.1"),
            ("010.0.0.1", "127.0.0.1"),
            ("0x7f.1", "127.0.0.1"),
            ("2130706433", "127.0.0.1"),
            ("1.2.3.256", "127.0.0.1"),
            ("6.6.6.6, ::ffff:10.0.0.1", "6.6.6.6"),
        ];
        for (field, expected) in cases {
            assert_eq!(client(&chain, "127.0.0.1", &[field]), expected, "{field}");
        }
        assert_eq!(
            chain.client(Some("127.0.0.1".parse().unwrap()), &[b"1.2.3.4\xff"]).unwrap().to_string(),
            "127.0.0.1"
        );
    }

    #[test]
    fn i06_only_the_configured_header_is_walked() {
        let local = ProxyTrust { header: ForwardedHeader::Forwarded, ..trust(&["127.0.0.1", "10.0.0.0/8"], 4) };
        let cases = [
            ("for=9.9.9.9, for=8.8.8.8", "8.8.8.8"),
            ("for=9.9.9.9;proto=https, For=\"10.0.0.7:4711\";by=10.0.0.1", "9.9.9.9"),
            ("for=\"[2001:db8::1]:443\"", "2001:db8::1"),
            ("for=\"[::ffff:192.0.2.1]\"", "192.0.2.1"),
            ("for=\"_hidden\", for=1.2.3.4;by=_x", "1.2.3.4"),
            ("for=1.2.3.4, for=unknown", "127.0.0.1"),
            ("for=1.2.3.4, for=_obfuscated", "127.0.0.1"),
            ("for=1.2.3.4, proto=https", "127.0.0.1"),
            ("1.2.3.4", "127.0.0.1"),
            ("", "127.0.0.1"),
        ];
        for (field, expected) in cases {
            assert_eq!(client(&local, "127.0.0.1", &[field]), expected, "{field}");
        }
        assert_eq!(client(&local, "203.0.113.9", &["for=1.2.3.4"]), "203.0.113.9");
    }

    #[test]
    fn a_quote_that_a_client_opens_cannot_swallow_the_entry_of_its_proxy() {
        let local = ProxyTrust { header: ForwardedHeader::Forwarded, ..trust(&["127.0.0.1"], 1) };
        for forged in ["for=6.6.6.6;x=\"", "for=\"6.6.6.6", "for=6.6.6.6;x=\"\\\""] {
            for own in ["for=9.9.9.9", "for=\"9.9.9.9:80\"", "for=\"9.9.9.9\";by=\"10.0.0.1\""] {
                let joined = format!("{forged}, {own}");
                assert_eq!(client(&local, "127.0.0.1", &[&joined]), "127.0.0.1", "{joined}");
                assert_eq!(client(&local, "127.0.0.1", &[forged, own]), "9.9.9.9", "{joined}");
            }
        }
    }
}
