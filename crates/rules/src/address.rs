//! Canonical addresses and networks.
//!
//! All addresses are compared as IPv6; IPv4 is mapped to `::ffff:a.b.c.d`, so `192.0.2.1` and `::ffff:c000:201` are one
//! client (RELIABILITY I07). An IPv6 client is counted by its network, by default a /64 (I08).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::problem::{ParseError, quote};

/// Identity of a client by its address: an IPv4 address or an IPv6 network. Displays canonically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpKey {
    bits: u128,
    prefix_len: u8,
}

impl IpKey {
    /// The key of an address in IPv6 space; `v6_prefix` leading bits of an IPv6 address are used (at most 128).
    ///
    /// An address that embeds an IPv4 address has the key of that one. Otherwise an IPv4 client had a second budget
    /// behind NAT64 (`64:ff9b::/96`), and one for each network that it invents behind 6to4 (`2002::/16`) (RELIABILITY
    /// I10).
    pub fn new(bits: u128, v6_prefix: u8) -> Self {
        let bits = carried(bits).unwrap_or(bits);
        let prefix_len = if is_v4(bits) { 128 } else { v6_prefix.min(128) };
        Self { bits: bits & mask(prefix_len), prefix_len }
    }

    /// The address in IPv6 space, masked.
    pub fn bits(self) -> u128 {
        self.bits
    }
}

impl fmt::Display for IpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match plain(self.bits) {
            IpAddr::V4(address) => write!(f, "{address}"),
            IpAddr::V6(address) if self.prefix_len == 128 => write!(f, "{address}"),
            IpAddr::V6(address) => write!(f, "{address}/{}", self.prefix_len),
        }
    }
}

/// The key of an address from a header; `None` if the text is not strictly an address.
pub fn canonical_ip(text: &str, v6_prefix: u8) -> Option<IpKey> {
    Some(IpKey::new(parse_ip(text)?, v6_prefix))
}

/// An address in IPv6 space. Port, brackets and zone are dropped (RELIABILITY I04), unusual spellings rejected (I09).
pub fn parse_ip(text: &str) -> Option<u128> {
    if let Some(inner) = text.strip_prefix('[') {
        let (address, after) = inner.split_once(']')?;
        let bare = after.is_empty() || after.strip_prefix(':').is_some_and(is_port);
        return bare.then(|| parse_v6(address))?;
    }
    if let Some((address, port)) = text.split_once(':')
        && let Ok(address) = address.parse::<Ipv4Addr>()
    {
        return is_port(port).then(|| address.to_ipv6_mapped().to_bits());
    }
    match text.parse::<Ipv4Addr>() {
        Ok(address) => Some(address.to_ipv6_mapped().to_bits()),
        Err(_) => parse_v6(text),
    }
}

/// A network in IPv6 space: `10.0.0.0/8` has the prefix length 104.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    /// First address.
    pub addr: u128,
    /// Length of the prefix, of 128 bits.
    pub prefix_len: u8,
}

impl Cidr {
    /// Reads an address or a network. Host bits must be zero: `10.0.0.1/8` may mean the address or the network.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let bad = || {
            ParseError::new(
                format!("{} is not an address or a network", quote(text)),
                "write 192.0.2.1, 10.0.0.0/8, 2001:db8::1 or 2001:db8::/32, without leading zeros, port or zone",
            )
        };
        let (addr, width) = match address.parse::<IpAddr>().map_err(|_| bad())? {
            IpAddr::V4(address) => (address.to_ipv6_mapped().to_bits(), 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        let Some(length) = length else { return Ok(Self { addr, prefix_len: 128 }) };
        let digits = length.bytes().all(|byte| byte.is_ascii_digit()) && !(length.len() > 1 && length.starts_with('0'));
        let length: u8 = length.parse().ok().filter(|_| digits).ok_or_else(bad)?;
        if length > width {
            return Err(ParseError::new(
                format!("{} has a prefix length of {length}", quote(text)),
                format!("the prefix length of this address goes from 0 to {width}"),
            ));
        }
        let cidr = Self { addr, prefix_len: length + (128 - width) };
        let network = Self { addr: addr & mask(cidr.prefix_len), ..cidr };
        if network != cidr {
            return Err(ParseError::new(
                format!("{} has host bits set", quote(text)),
                format!("write {network} for the network, or {address} for the one address"),
            ));
        }
        Ok(cidr)
    }

    /// Whether the network contains an address of IPv6 space. An IPv6 network such as `::/0` contains no IPv4 address.
    pub fn contains(self, bits: u128) -> bool {
        self.covers(bits) && (self.prefix_len >= 96 || !is_v4(bits))
    }

    /// Whether a rule for the network matches a client of this address: the network contains it, or the IPv4 address
    /// that it embeds behind NAT64 or 6to4, by which such a client is counted too (RELIABILITY I10). Not for trusted
    /// networks: a client can invent an address that embeds another.
    pub fn matches(self, bits: u128) -> bool {
        self.contains(bits) || carried(bits).is_some_and(|carried| self.contains(carried))
    }

    /// Whether the address starts with the prefix of the network, IPv4 or IPv6.
    pub fn covers(self, bits: u128) -> bool {
        bits & mask(self.prefix_len) == self.addr
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match plain(self.addr) {
            IpAddr::V4(address) if self.prefix_len == 128 => write!(f, "{address}"),
            IpAddr::V4(address) if self.prefix_len >= 96 => write!(f, "{address}/{}", self.prefix_len - 96),
            IpAddr::V6(address) if self.prefix_len == 128 => write!(f, "{address}"),
            _ => write!(f, "{}/{}", Ipv6Addr::from_bits(self.addr), self.prefix_len),
        }
    }
}

fn parse_v6(text: &str) -> Option<u128> {
    let address = match text.split_once('%') {
        Some((_, "")) => return None,
        Some((address, _)) => address,
        None => text,
    };
    address.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits)
}

fn is_port(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// The IPv4 address that a translated or tunnelled address embeds, in IPv6 space.
pub fn carried(bits: u128) -> Option<u128> {
    embedded_v4(bits).map(|address| address.to_ipv6_mapped().to_bits())
}

fn embedded_v4(bits: u128) -> Option<Ipv4Addr> {
    const NAT64: u128 = 0x0064_ff9b << 96;
    let shift = match bits {
        _ if bits & mask(96) == NAT64 => 0,
        _ if bits >> 112 == 0x2002 => 80,
        _ => return None,
    };
    Some(Ipv4Addr::from_bits((bits >> shift) as u32))
}

fn is_v4(bits: u128) -> bool {
    bits >> 32 == 0xffff
}

fn mask(prefix_len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(prefix_len.min(128))).unwrap_or(0)
}

fn plain(bits: u128) -> IpAddr {
    Ipv6Addr::from_bits(bits).to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Option<String> {
        canonical_ip(text, 64).map(|key| key.to_string())
    }

    #[test]
    fn i04_ports_brackets_and_zones_are_stripped() {
        let cases = [
            ("1.2.3.4", Some("1.2.3.4")),
            ("1.2.3.4:8080", Some("1.2.3.4")),
            ("[2001:db8::1]:443", Some("2001:db8::/64")),
            ("[2001:db8::1]", Some("2001:db8::/64")),
            ("::1%eth0", Some("::/64")),
            ("[fe80::1%eth0]:80", Some("fe80::/64")),
            ("unknown", None),
            ("", None),
            (" ", None),
            ("\"1.2.3.4\"", None),
            ("_hidden", None),
            ("1.2.3.4:", None),
            ("1.2.3.4:99999", None),
            ("1.2.3.4:+80", None),
            ("[1.2.3.4]", None),
            ("[::1", None),
            ("[::1]x", None),
            ("::1%", None),
            ("1.2.3.4%eth0", None),
            ("1.2.3.4 ", None),
        ];
        for (text, expected) in cases {
            assert_eq!(key(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn i07_mapped_addresses_are_v4() {
        for text in ["::ffff:192.0.2.1", "192.0.2.1", "::ffff:c000:201", "[::FFFF:192.0.2.1]:80"] {
            assert_eq!(key(text).as_deref(), Some("192.0.2.1"), "{text}");
        }
    }

    #[test]
    fn i08_v6_is_counted_by_network() {
        for text in ["2001:db8:0:0::1", "2001:DB8::2", "2001:0db8::3"] {
            assert_eq!(key(text).as_deref(), Some("2001:db8::/64"), "{text}");
        }
        let with = |prefix| canonical_ip("2001:db8:1:2:3::1", prefix).map(|key| key.to_string());
        assert_eq!(with(48).as_deref(), Some("2001:db8:1::/48"));
        assert_eq!(with(128).as_deref(), Some("2001:db8:1:2:3::1"));
        assert_eq!(with(0).as_deref(), Some("::/0"));
        assert_eq!(with(255).as_deref(), Some("2001:db8:1:2:3::1"));
    }

    #[test]
    fn i10_embedded_addresses_count_as_v4() {
        let cases = [
            ("64:ff9b::192.0.2.1", "192.0.2.1"),
            ("64:ff9b::c000:201", "192.0.2.1"),
            ("2002:c000:201::1", "192.0.2.1"),
            ("2002:c000:201:ffff::42", "192.0.2.1"),
            ("64:ff9b:1::c000:201", "64:ff9b:1::/64"),
            ("2003:c000:201::1", "2003:c000:201::/64"),
        ];
        for (text, expected) in cases {
            assert_eq!(key(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn i09_odd_spellings_are_not_addresses() {
        for text in
            ["010.0.0.1", "0x7f.1", "2130706433", "1.2.3.256", "1.2.3", "1.2.3.4.5", "::ffff:010.0.0.1", "::1::2"]
        {
            assert_eq!(key(text), None, "{text}");
        }
    }

    #[test]
    fn y10_networks_are_strict() {
        let shown = |text| Cidr::parse(text).map(|cidr| cidr.to_string()).map_err(|fault| fault.to_string());
        for text in ["10.0.0.0/8", "0.0.0.0/0", "192.0.2.1", "2001:db8::/32", "::/0", "2001:db8::1", "1.2.3.4/31"] {
            assert_eq!(shown(text).as_deref(), Ok(text));
        }
        assert_eq!(shown("::ffff:10.0.0.0/104").as_deref(), Ok("10.0.0.0/8"));
        assert_eq!(shown("1.2.3.4/32").as_deref(), Ok("1.2.3.4"));
        let cases = [
            ("1.2.3.4/33", "prefix length of 33; the prefix length of this address goes from 0 to 32"),
            ("10.0.0.1/8", "has host bits set; write 10.0.0.0/8 for the network, or 10.0.0.1 for the one address"),
            ("2001:db8::1/64", "has host bits set; write 2001:db8::/64"),
            ("010.0.0.1", "not an address"),
            ("10.0.0.0/08", "not an address"),
            ("10.0.0.0/", "not an address"),
            ("10.0.0.0/+8", "not an address"),
            ("::/129", "from 0 to 128"),
            ("fe80::1%eth0", "not an address"),
            ("", "not an address"),
        ];
        for (text, expected) in cases {
            let fault = shown(text).expect_err(text);
            assert!(fault.contains(expected), "{text}: {fault}");
        }
    }

    #[test]
    fn networks_hold_their_addresses() {
        let holds = |network: &str, text: &str| Cidr::parse(network).unwrap().contains(parse_ip(text).unwrap());
        assert!(holds("10.0.0.0/8", "10.255.0.1"));
        assert!(holds("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(!holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("0.0.0.0/0", "1.2.3.4") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("::/0", "2001:db8::1") && !holds("::/0", "1.2.3.4"));
        assert!(holds("2001:db8::/32", "2001:db8:ffff::1") && !holds("2001:db8::/32", "2001:db9::1"));
    }

    #[test]
    fn networks_match_what_carries_their_addresses() {
        let matches = |network: &str, text: &str| Cidr::parse(network).unwrap().matches(parse_ip(text).unwrap());
        for text in ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "2002:a01:203::1", "2002:a01:203:ffff::"] {
            assert!(matches("10.0.0.0/8", text) && matches("10.1.2.3", text), "{text}");
            assert!(!matches("11.0.0.0/8", text), "{text}");
        }
        assert!(matches("64:ff9b::/96", "64:ff9b::10.1.2.3") && matches("2002::/16", "2002:a01:203::1"));
        assert!(matches("::/0", "64:ff9b::10.1.2.3") && !matches("::/0", "10.1.2.3"));
        assert!(!matches("10.0.0.0/8", "64:ff9b:1::10.1.2.3") && !matches("10.0.0.0/8", "::10.1.2.3"));
        let trusted = Cidr::parse("10.0.0.0/8").unwrap();
        assert!(!trusted.contains(parse_ip("2002:a01:203::1").unwrap()), "a client can make up such an address");
    }
}
