//! The client's address: X-Forwarded-For, read from the right, for as long as each entry was added by a trusted proxy.
//!
//! Each proxy appends the address of its own peer, so the client controls everything but the right end. An entry counts
//! if the entry after it (for the last entry: the connection) is in `trusted_proxies`, and at most `trusted_hops`
//! entries count. An entry that is not an address ends the walk: the proxy that added it then counts as the client.

use std::net::{IpAddr, Ipv6Addr};

use tollgate_rules::address::{Cidr, parse_ip};

/// The proxies whose X-Forwarded-For entries are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyTrust {
    /// Networks of proxies.
    pub proxies: Vec<Cidr>,
    /// Most entries that count.
    pub hops: usize,
}

impl ProxyTrust {
    /// The client's address. `peer` is the other end of the connection: `None` for a Unix domain socket, which is
    /// trusted because file permissions control who may connect. `forwarded` are the X-Forwarded-For fields in order.
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

    /// True if X-Forwarded-For is trusted from this address; `None` is a Unix domain socket.
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
        trust.client(peer, &fields).map_or("none".to_owned(), |address| address.to_string())
    }

    fn trust(proxies: &[&str], hops: usize) -> ProxyTrust {
        ProxyTrust { proxies: proxies.iter().map(|text| Cidr::parse(text).unwrap()).collect(), hops }
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
}
