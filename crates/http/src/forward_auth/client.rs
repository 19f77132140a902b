//! Who asked the proxy: X-Forwarded-For, read from its right end, for as long as whoever added to it is trusted.
//!
//! Each proxy adds the address it was asked from, so only its right end is anybody's word but the client's. An entry
//! counts when the one after it (of the last entry, the connection itself) comes from `trusted_proxies`, and at most
//! `trusted_hops` of them do. One that is no address ends the walk: who added it is then the nearest we know.

use std::net::{IpAddr, Ipv6Addr};

use tollgate_rules::address::{Cidr, parse_ip};

/// AttributeName word is taken about whom they serve for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyTrust {
    /// Networks of proxies.
    pub proxies: Vec<Cidr>,
    /// Entries that count at most.
    pub hops: usize,
}

impl ProxyTrust {
    /// The client's address. `peer` is the other end of the connection, and `None` that of a Unix domain socket, where
    /// the file system says who may connect; `forwarded` are the fields X-Forwarded-For in their order.
    pub fn client(&self, peer: Option<IpAddr>, forwarded: &[&[u8]]) -> Option<IpAddr> {
        let entries = forwarded.iter().rev().flat_map(|field| field.rsplit(|byte| *byte == b','));
        let mut client = peer;
        for entry in entries.take(self.hops) {
            if !self.is_trusted(client) {
                break;
            }
            let Some(bits) = str::from_utf8(entry.trim_ascii()).ok().and_then(parse_ip) else { break };
            client = Some(Ipv6Addr::from_bits(bits).to_canonical());
        }
        client
    }

    /// Whether somebody may serve for others.
    pub fn is_trusted(&self, address: Option<IpAddr>) -> bool {
        let bits = address.map(|address| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits(),
        });
        self.hops > 0 && bits.is_none_or(|bits| self.proxies.iter().any(|network| network.contains(bits)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trust: &ProxyTrust, peer: &str, fields: &[&str]) -> String {
        let fields: Vec<&[u8]> = fields.iter().map(|field| field.as_bytes()).collect();
        let peer = (peer != "unix").then(|| peer.parse::<IpAddr>().unwrap());
        trust.client(peer, &fields).map_or("nobody".to_owned(), |address| address.to_string())
    }

    fn trust(proxies: &[&str], hops: usize) -> ProxyTrust {
        ProxyTrust { proxies: proxies.iter().map(|text| Cidr::parse(text).unwrap()).collect(), hops }
    }

    #[test]
    fn i01_nobody_but_a_trusted_peer_speaks_for_others() {
        let local = trust(&["127.0.0.0/8", "::1"], 1);
        assert_eq!(client(&local, "203.0.113.9", &["1.2.3.4"]), "203.0.113.9");
        assert_eq!(client(&local, "2001:db8::1", &["1.2.3.4"]), "2001:db8::1");
        assert_eq!(client(&trust(&["127.0.0.0/8"], 0), "127.0.0.1", &["1.2.3.4"]), "127.0.0.1");
        assert_eq!(client(&trust(&[], 1), "127.0.0.1", &["1.2.3.4"]), "127.0.0.1");
        for (peer, expected) in [("127.0.0.1", "1.2.3.4"), ("::1", "1.2.3.4"), ("unix", "1.2.3.4")] {
            assert_eq!(client(&local, peer, &["1.2.3.4"]), expected, "{peer}");
        }
        assert_eq!(client(&local, "127.0.0.1", &[]), "127.0.0.1");
        assert_eq!(client(&local, "unix", &[]), "nobody");
    }

    #[test]
    fn i02_the_first_that_is_not_trusted_counts_from_the_right() {
        let one = trust(&["127.0.0.0/8"], 1);
        assert_eq!(client(&one, "127.0.0.1", &["9.9.9.9, 8.8.8.8"]), "8.8.8.8");
        assert_eq!(client(&one, "127.0.0.1", &["9.9.9.9", "8.8.8.8"]), "8.8.8.8", "two fields are one list");
        let chain = trust(&["127.0.0.1", "10.0.0.0/8"], 3);
        assert_eq!(client(&chain, "127.0.0.1", &["6.6.6.6, 9.9.9.9, 10.0.0.7"]), "9.9.9.9");
        assert_eq!(client(&chain, "127.0.0.1", &["6.6.6.6, 9.9.9.9"]), "9.9.9.9", "an outer proxy was passed by");
        assert_eq!(client(&chain, "127.0.0.1", &["9.9.9.9, 10.1.1.1, 10.2.2.2, 10.3.3.3"]), "10.1.1.1");
        let anybody = trust(&["0.0.0.0/0", "::/0"], 2);
        assert_eq!(client(&anybody, "192.0.2.1", &["6.6.6.6, 9.9.9.9, 8.8.8.8"]), "9.9.9.9", "so many and no more");
    }

    #[test]
    fn i04_i07_i09_spellings_are_one_address_and_junk_ends_the_walk() {
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
}
