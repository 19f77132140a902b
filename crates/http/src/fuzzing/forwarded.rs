//! X-Forwarded-For: only a trusted proxy can set the client address, and nothing that a client sends changes the entry
//! that its proxy appends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tollgate_rules::address::{Cidr, parse_ip};

use tollgate_identity::ProxyTrust;

/// Input: one byte for the peer and the trusted hops, then X-Forwarded-For fields, one per line.
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
    let trust = ProxyTrust { proxies, hops: usize::from(first >> 2 & 7), ..ProxyTrust::default() };
    let fields: Vec<&[u8]> = rest.split(|byte| *byte == b'\n').collect();
    let client = trust.client(peer, &fields);
    assert_eq!(client, reference(&trust, peer, rest), "{:?}", rest.escape_ascii().to_string());
    assert!(client == peer || trust.is_trusted(peer), "an untrusted peer set the client address");
    assert!(client.is_some() || peer.is_none());
    assert_eq!(client.map(|client| client.to_canonical()), client, "the address is not canonical");

    // With one hop, nothing to the left of the address that the proxy appends counts.
    let one_hop = ProxyTrust { hops: 1, ..trust };
    let added: [&[u8]; 1] = [b"192.0.2.77"];
    let forged: Vec<&[u8]> = fields.iter().copied().chain(added).collect();
    assert_eq!(one_hop.client(peer, &forged), one_hop.client(peer, &added), "a client chose its own address");
}

/// Reference implementation: all entries in one list, walked from its end.
fn reference(trust: &ProxyTrust, peer: Option<IpAddr>, fields: &[u8]) -> Option<IpAddr> {
    let mut client = peer;
    for (hop, entry) in fields.split(|byte| b",\n".contains(byte)).collect::<Vec<_>>().into_iter().rev().enumerate() {
        let entry = String::from_utf8_lossy(entry); // invalid UTF-8 leaves a replacement character
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
