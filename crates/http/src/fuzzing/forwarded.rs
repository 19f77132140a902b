//! X-Forwarded-For: whoever is found was named by somebody trusted, and nothing a client writes changes what its proxy
//! has added.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tollgate_rules::address::{Cidr, parse_ip};

use crate::forward_auth::ProxyTrust;

/// A byte for the peer and who is trusted, then fields, each on a line.
pub fn forwarded(data: &[u8]) {
    let (&first, rest) = data.split_first().unwrap_or((&0, &[]));
    let peer = match first & 3 {
        0 => None,
        1 => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        2 => Some(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        _ => Some(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9))),
    };
    let networks = ["127.0.0.0/8", "::1", "10.0.0.0/8", "2001:db8::/32"];
    let proxies = networks.into_iter().filter_map(|network| Cidr::parse(network).ok()).collect();
    let trust = ProxyTrust { proxies, hops: usize::from(first >> 2 & 7) };
    let fields: Vec<&[u8]> = rest.split(|byte| *byte == b'\n').collect();
    let client = trust.client(peer, &fields);
    assert_eq!(client, naive(&trust, peer, rest), "{:?}", rest.escape_ascii().to_string());
    assert!(client == peer || trust.is_trusted(peer), "somebody who is not trusted spoke for another");
    assert!(client.is_some() || peer.is_none());
    assert_eq!(client.map(|client| client.to_canonical()), client, "two spellings of one address");

    // The proxy adds whom it was asked by: from then on nothing to the left of it counts for one hop.
    let alone = ProxyTrust { hops: 1, ..trust };
    let added: [&[u8]; 1] = [b"192.0.2.77"];
    let forged: Vec<&[u8]> = fields.iter().copied().chain(added).collect();
    assert_eq!(alone.client(peer, &forged), alone.client(peer, &added), "a client chose its own address");
}

/// The same once more: all entries in one list, from its end.
fn naive(trust: &ProxyTrust, peer: Option<IpAddr>, fields: &[u8]) -> Option<IpAddr> {
    let mut client = peer;
    for (hop, entry) in fields.split(|byte| b",\n".contains(byte)).collect::<Vec<_>>().into_iter().rev().enumerate() {
        let entry = String::from_utf8_lossy(entry); // what is no text then holds a mark
        let entry = entry.trim_matches([' ', '\t', '\r', '\x0c']);
        match parse_ip(entry).filter(|_| !entry.contains('\u{fffd}')) {
            Some(bits) if hop < trust.hops && trust.is_trusted(client) => {
                client = Some(Ipv6Addr::from_bits(bits).to_canonical());
            }
            _ => break,
        }
    }
    client
}
