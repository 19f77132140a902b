//! Addresses and networks, against what the standard library says about the same text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tollgate_rules::address::parse_ip;
use tollgate_rules::{Cidr, Pattern, canonical_ip};

/// Three lines: an address, a network, and how many bits of an IPv6 address count.
pub fn addresses(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (address, network, prefix) = (line(), line(), line());
    let prefix = prefix.trim_end().parse().unwrap_or(64);
    check_address(address, prefix);
    check_network(network, address);
}

/// An address as headers have it, read with the standard library's parsers alone.
pub(super) fn reference(text: &str) -> Option<IpAddr> {
    let port = |text: &str| text.len() <= 5 && !text.starts_with('+') && text.parse::<u16>().is_ok();
    let v6 = |text: &str| {
        let (address, zone) = text.split_once('%').unwrap_or((text, "none"));
        let address: Option<Ipv6Addr> = if zone.is_empty() { None } else { address.parse().ok() };
        address.map(|address| address.to_canonical())
    };
    if let Some(rest) = text.strip_prefix('[') {
        let (address, end) = rest.split_once(']')?;
        let is_end = end.is_empty() || end.strip_prefix(':').is_some_and(port);
        return if is_end { v6(address) } else { None };
    }
    let (host, end) = text.split_once(':').unwrap_or((text, "0"));
    match host.parse::<Ipv4Addr>() {
        Ok(address) => port(end).then_some(IpAddr::V4(address)),
        Err(_) => v6(text),
    }
}

/// What an address is counted by: itself, or its network.
pub(super) fn counted(address: IpAddr, prefix: u8) -> (bool, u128) {
    match address {
        IpAddr::V4(address) => (true, u128::from(address.to_bits())),
        IpAddr::V6(address) => (false, leading(address.to_bits(), 128, prefix.into())),
    }
}

/// The first `count` of `width` bits.
fn leading(bits: u128, width: u32, count: u32) -> u128 {
    let dropped = width - count.min(width);
    if dropped >= 128 { 0 } else { bits >> dropped << dropped }
}

fn check_address(text: &str, prefix: u8) {
    let expected = reference(text);
    let space = expected.map(|address| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    });
    assert_eq!(parse_ip(text), space, "{text:?}");
    let key = canonical_ip(text, prefix);
    let (Some(address), Some(key)) = (expected, key) else {
        return assert!(expected.is_none() && key.is_none(), "{text:?}");
    };
    let shown = key.to_string();
    let (host, length) = shown.split_once('/').unwrap_or((&shown, "128"));
    assert_eq!(canonical_ip(host, prefix), Some(key), "{text:?} is shown as {shown:?}");
    match address {
        IpAddr::V4(address) => {
            assert_eq!(shown, address.to_string());
            let mapped = address.to_ipv6_mapped();
            let [.., high, low] = mapped.segments();
            let spellings = [
                mapped.to_string(),
                format!("::FFFF:{high:x}:{low:04X}"),
                format!("0:0:0:0:0:ffff:{address}"),
                format!("[::ffff:{address}]:443"),
                format!("{address}:1"),
            ];
            for spelling in spellings {
                assert_eq!(canonical_ip(&spelling, prefix), Some(key), "{spelling:?} is {text:?}");
            }
        }
        IpAddr::V6(address) => {
            assert_eq!(length, prefix.min(128).to_string(), "{shown:?}");
            assert_eq!(host.parse::<Ipv6Addr>().map(Ipv6Addr::to_bits), Ok(counted(address.into(), prefix).1));
            check_siblings(address, prefix);
        }
    }
}

/// The other end of the same network counts alike, and the next network does not.
fn check_siblings(address: Ipv6Addr, prefix: u8) {
    let key = |bits: u128| canonical_ip(&format!("[{}%eth0]:80", Ipv6Addr::from_bits(bits)), prefix);
    let own = key(address.to_bits());
    let first = leading(address.to_bits(), 128, prefix.into());
    let host_bits = if prefix == 0 { u128::MAX } else { u128::MAX.checked_shr(prefix.into()).unwrap_or(0) };
    let is_v4 = |bits: u128| Ipv6Addr::from_bits(bits).to_ipv4_mapped().is_some();
    for sibling in [first, first | host_bits, first | (host_bits / 3)] {
        assert!(is_v4(sibling) || key(sibling) == own, "{address} and {}", Ipv6Addr::from_bits(sibling));
    }
    if let Some(neighbour) = (first | host_bits).checked_add(1) {
        assert_ne!(key(neighbour), own, "{address} is not in the next network");
    }
}

fn check_network(text: &str, address: &str) {
    let (host, length) = text.split_once('/').map_or((text, None), |(host, length)| (host, Some(length)));
    let host = host.parse::<IpAddr>().ok();
    let width = |host: IpAddr| if host.is_ipv4() { 32 } else { 128 };
    // Exactly the decimal spelling of a number, no zero or sign in front.
    let length = length.map(|text| text.parse::<u32>().ok().filter(|length| length.to_string() == text));
    let expected = host.and_then(|host| match length {
        None => Some((host, width(host))),
        Some(length) => length.filter(|length| *length <= width(host)).map(|length| (host, length)),
    });
    let expected = expected.filter(|(host, length)| match host {
        IpAddr::V4(host) => leading(host.to_bits().into(), 32, *length) == host.to_bits().into(),
        IpAddr::V6(host) => leading(host.to_bits(), 128, *length) == host.to_bits(),
    });
    let found = Cidr::parse(text);
    assert_eq!(found.is_ok(), expected.is_some(), "{text:?}: {found:?}");
    let (Ok(cidr), Some((host, length))) = (found, expected) else { return };
    assert_eq!(Cidr::parse(&cidr.to_string()), Ok(cidr), "{text:?} is shown as {cidr}");
    let probes = [reference(address), Some(host), Some(neighbour(host)), Some(Ipv4Addr::LOCALHOST.into())];
    for probe in probes.into_iter().flatten() {
        let bits = parse_ip(&probe.to_string()).expect("an address of the standard library");
        let holds = holds(host, length, probe);
        assert_eq!(cidr.contains(bits), holds, "{text:?} and {probe}");
        let matches = holds || carried(probe).is_some_and(|carried| self::holds(host, length, carried));
        assert_eq!(Pattern::Cidr(cidr).matches(&probe.to_string()), matches, "{text:?} and {probe}");
    }
}

/// The IPv4 address behind NAT64 or 6to4.
fn carried(probe: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(probe) = probe else { return None };
    match probe.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => {
            Some(Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b)).into())
        }
        _ => None,
    }
}

fn neighbour(host: IpAddr) -> IpAddr {
    match host {
        IpAddr::V4(host) => Ipv4Addr::from_bits(host.to_bits() ^ 1).into(),
        IpAddr::V6(host) => Ipv6Addr::from_bits(host.to_bits() ^ 1).into(),
    }
}

/// Membership, family by family; a mapped network of at least /96 is the IPv4 network it maps.
fn holds(host: IpAddr, length: u32, probe: IpAddr) -> bool {
    let (host, length) = match host {
        IpAddr::V6(v6) if length >= 96 => match v6.to_ipv4_mapped() {
            Some(v4) => (IpAddr::V4(v4), length - 96),
            None => (host, length),
        },
        _ => (host, length),
    };
    match (host, probe.to_canonical()) {
        (IpAddr::V4(host), IpAddr::V4(probe)) => {
            leading(probe.to_bits().into(), 32, length) == u128::from(host.to_bits())
        }
        (IpAddr::V6(host), IpAddr::V6(probe)) => leading(probe.to_bits(), 128, length) == host.to_bits(),
        _ => false,
    }
}
