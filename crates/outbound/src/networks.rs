//! Which addresses may be called.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The networks that messages may go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Networks {
    /// Addresses of the public internet, over TLS.
    #[default]
    Public,
    /// Also this machine and private networks, also without TLS.
    Any,
}

impl Networks {
    /// True if an address may be called.
    pub fn permit(self, address: IpAddr) -> bool {
        match self {
            Networks::Any => !address.is_multicast(),
            Networks::Public => is_public(address),
        }
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Networks that are not reached over the public internet, as IANA's registry of special purposes has them.
const SPECIAL_V4: [([u8; 4], u32); 15] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |(network, bits): &([u8; 4], u32)| {
        let mask = u32::MAX << (32 - bits);
        address.to_bits() & mask == Ipv4Addr::from(*network).to_bits()
    };
    !SPECIAL_V4.iter().any(within)
}

/// Of IPv6 only global unicast (2000::/3), without what is reserved in it. Addresses that carry one of IPv4 are judged by
/// that: a translator would forward to it.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let low = |at: usize| {
        let octets = address.octets();
        let four = octets.get(at..at + 4).and_then(|four| <[u8; 4]>::try_from(four).ok());
        four.map_or(Ipv4Addr::UNSPECIFIED, Ipv4Addr::from)
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_public_v4(low(12)),
        [0x2002, ..] => is_public_v4(low(2)),
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for inside in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.170",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
        ] {
            let address: IpAddr = inside.parse().unwrap();
            assert!(!Networks::Public.permit(address), "{inside}");
            assert_eq!(Networks::Any.permit(address), !address.is_multicast(), "{inside}");
        }
        for outside in [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(Networks::Public.permit(outside.parse().unwrap()), "{outside}");
        }
    }
}
