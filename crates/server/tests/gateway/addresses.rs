//! The address of a caller: of its connection, of a header that trusted proxies have written, of a PROXY header.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::callers::{BY_CLIENT, IdentityRig, left};
use crate::rig::{Caller, until, within};

/// The tests' own connections come from a proxy, those of 127.0.0.2 from anywhere.
const BEHIND_PROXIES: &str = "identity: []\ntrusted_proxies: [127.0.0.1, 10.0.0.0/8]\ntrusted_hops: 3";

fn xff(list: &str) -> String {
    format!("X-Forwarded-For: {list}\r\n")
}

#[tokio::test]
async fn i01_a_header_from_anywhere_names_no_client() {
    let id = IdentityRig::start(BEHIND_PROXIES, &[]).await;
    let mut stranger = id.rig.connect_from([127, 0, 0, 2]).await;
    let first = left(&mut stranger, "").await;
    for (count, forged) in [
        "X-Forwarded-For: 9.9.9.9\r\n",
        "Forwarded: for=9.9.9.9\r\n",
        "X-Real-IP: 9.9.9.9\r\n",
        "CF-Connecting-IP: 9.9.9.9\r\n",
    ]
    .iter()
    .enumerate()
    {
        assert_eq!(left(&mut stranger, forged).await, first - 1 - count as u64, "{forged}");
    }
    assert_eq!(id.left(&xff("9.9.9.9")).await, 999_999, "its bucket is unused");
    let seen = id.app.seen();
    assert!(
        seen[1].contains("x-forwarded-for: 127.0.0.2\r\n"),
        "the server is told what the gateway knows: {}",
        seen[1]
    );
    assert!(seen[5].contains("x-forwarded-for: 9.9.9.9, 127.0.0.1\r\n"), "{}", seen[5]);
}

#[tokio::test]
async fn i02_entries_count_from_the_right_while_proxies_have_written_them() {
    let id = IdentityRig::start(BEHIND_PROXIES, &[]).await;
    let mut expected = 1_000_000;
    for same in [
        "9.9.9.9",
        "9.9.9.9, 10.0.0.7",
        "9.9.9.9, 10.1.1.1, 10.0.0.7",
        "6.6.6.6, 9.9.9.9",
        "6.6.6.6, 7.7.7.7, 9.9.9.9, 10.0.0.7",
        "unknown, 9.9.9.9",
        "9.9.9.9:4711, 10.0.0.7:80",
        "6.6.6.6\r\nX-Forwarded-For: 9.9.9.9",
    ] {
        expected -= 1;
        assert_eq!(id.left(&xff(same)).await, expected, "{same}");
    }
    // One hop more than is trusted: the outermost of the three counts.
    let before = id.left(&xff("10.3.3.3")).await;
    assert_eq!(id.left(&xff("6.6.6.6, 10.3.3.3, 10.2.2.2, 10.1.1.1")).await, before - 1);
}

/// I04, I09: an entry that is no address ends the walk, and the proxy that wrote it is the client.
#[tokio::test]
async fn i04_i09_no_spelling_of_an_entry_makes_a_new_client() {
    let id = IdentityRig::start(BEHIND_PROXIES, &[]).await;
    for junk in [
        "unknown",
        "_hidden",
        "",
        ",",
        ", ,",
        "\"9.9.9.9\"",
        "010.0.0.1",
        "0x7f.1",
        "2130706433",
        "1.2.3.256",
        "1.2.3",
        "9.9.9.9 8.8.8.8",
        "9.9.9.9;",
        "[9.9.9.9]",
        "localhost",
        "9.9.9.9, unknown",
        "*",
        "-",
    ] {
        assert!(!id.is_own(&xff(junk)).await, "{junk:?}");
    }
}

#[tokio::test]
async fn i07_i08_spellings_of_an_address_are_one_client_and_so_is_a_network_of_ipv6() {
    let id = IdentityRig::start(BEHIND_PROXIES, &[]).await;
    for (client, spellings) in [
        ("v4", &["192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201", "[::ffff:192.0.2.1]:443", "::FFFF:192.0.2.1"][..]),
        ("its neighbour", &["192.0.2.2", "::ffff:192.0.2.2"]),
        ("v6", &["2001:db8::1", "2001:DB8:0:0::2", "2001:0db8::3:4:5:6", "[2001:db8::7]:443", "2001:db8::8%eth0"]),
        ("the next network", &["2001:db8:0:1::1", "2001:db8:0:1:ffff::"]),
    ] {
        for (count, spelling) in (1..).zip(spellings) {
            assert_eq!(id.left(&xff(spelling)).await, 1_000_000 - count, "{client}: {spelling}");
        }
    }
    // However many addresses a network has.
    let before = id.left(&xff("2001:db8:0:2::1")).await;
    for host in 2..200 {
        id.left(&xff(&format!("2001:db8:0:2:{host:x}:{host:x}:0:{host:x}"))).await;
    }
    assert_eq!(id.left(&xff("2001:db8:0:2::1")).await, before - 199);
}

#[tokio::test]
async fn i06_one_header_is_walked_and_the_other_means_nothing() {
    let id = IdentityRig::start(&format!("{BEHIND_PROXIES}\nforwarded: forwarded"), &[]).await;
    assert!(!id.is_own(&xff("9.9.9.9")).await);
    assert!(id.is_own("Forwarded: for=9.9.9.9\r\n").await);
    let left = id.left("Forwarded: for=9.9.9.9\r\n").await;
    for same in [
        "Forwarded: for=6.6.6.6, for=\"9.9.9.9:80\";proto=https\r\n",
        "Forwarded: for=9.9.9.9;by=10.0.0.1, For=10.0.0.7\r\nX-Forwarded-For: 8.8.8.8\r\n",
    ] {
        assert!(id.is_own(same).await, "{same}");
    }
    assert_eq!(id.left("Forwarded: for=9.9.9.9\r\n").await, left - 3);
    for junk in ["for=_hidden", "for=6.6.6.6;x=\"", "for=9.9.9.9, for=unknown", "9.9.9.9"] {
        assert!(!id.is_own(&format!("Forwarded: {junk}\r\n")).await, "{junk}");
    }
}

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A PROXY header, version 2.
fn header(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    [SIGNATURE, &[command, family], &u16::try_from(block.len()).unwrap().to_be_bytes(), block].concat()
}

/// TCP over IPv4.
fn v4(client: [u8; 4]) -> Vec<u8> {
    header(0x21, 0x11, &[&client[..], &[10, 0, 0, 9, 0x12, 0x34, 0, 80]].concat())
}

/// TCP over IPv6, with extensions behind the addresses.
fn v6(client: &str) -> Vec<u8> {
    let client: std::net::Ipv6Addr = client.parse().unwrap();
    header(0x21, 0x21, &[&client.octets()[..], &[0; 20], &[0x04, 0, 2, 7, 7]].concat())
}

async fn behind_balancer(identity: &str, balancers: &str) -> IdentityRig {
    IdentityRig::with(BY_CLIENT, identity, &[], |config| {
        config.gateway.proxy_protocol = vec![tollgate_rules::Cidr::parse(balancers).unwrap()];
    })
    .await
}

async fn proxied(id: &IdentityRig, header: &[u8]) -> Caller {
    let mut caller = id.rig.connect().await;
    within(caller.stream.write_all(header)).await.unwrap();
    caller
}

#[tokio::test]
async fn i15_a_balancer_names_the_client_of_each_connection() {
    let id = behind_balancer("identity: []", "127.0.0.1").await;
    for (client, headers) in [
        ("v4", vec![v4([192, 0, 2, 1]), v4([192, 0, 2, 1]), v6("::ffff:192.0.2.1")]),
        ("another", vec![v4([192, 0, 2, 2])]),
        ("v6, by its network", vec![v6("2001:db8::1"), v6("2001:db8::2")]),
        ("the balancer itself", vec![header(0x20, 0, &[]), header(0x20, 0x11, &[7; 40])]),
    ] {
        for (count, header) in (1..).zip(headers) {
            let mut caller = proxied(&id, &header).await;
            // What callers write themselves names no client: no proxy in front of the gateway is trusted.
            assert_eq!(left(&mut caller, &xff("9.9.9.9")).await, 1_000_000 - count, "{client}");
        }
    }
    let mut caller = proxied(&id, &v4([192, 0, 2, 3])).await;
    assert_eq!([left(&mut caller, "").await, left(&mut caller, "").await], [999_999, 999_998], "for all its requests");
    assert!(id.app.seen().last().unwrap().contains("x-forwarded-for: 192.0.2.3\r\n"));
}

#[tokio::test]
async fn i15_behind_a_balancer_and_a_proxy_the_walk_begins_at_the_balancers_client() {
    let id = behind_balancer("identity: []\ntrusted_proxies: [192.0.2.0/24]", "127.0.0.1").await;
    let mut by_proxy = proxied(&id, &v4([192, 0, 2, 1])).await;
    assert_eq!(left(&mut by_proxy, &xff("9.9.9.9")).await, 999_999);
    let mut stranger = proxied(&id, &v4([203, 0, 113, 9])).await;
    assert_eq!(left(&mut stranger, &xff("9.9.9.9")).await, 999_999, "it is 203.0.113.9");
    assert_eq!(left(&mut by_proxy, &xff("9.9.9.9")).await, 999_998);
}

#[tokio::test]
async fn i15_a_connection_that_cannot_name_its_client_is_closed() {
    let id = behind_balancer("identity: []", "127.0.0.1").await;
    let request = b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let too_long = [SIGNATURE, &[0x21, 0x11, 0xff, 0xff]].concat();
    let bad = [
        Vec::new(),
        b"PROXY TCP4 192.0.2.1 10.0.0.9 4711 80\r\n".to_vec(),
        header(0x11, 0x11, &[0; 12]),
        header(0x22, 0x11, &[0; 12]),
        header(0x21, 0x12, &[0; 12]),
        header(0x21, 0x11, &[0; 11]),
        header(0x21, 0x00, &[]),
        too_long,
    ];
    let count = bad.len();
    for bytes in bad {
        let mut caller = proxied(&id, &bytes).await;
        let _ = within(caller.stream.write_all(request)).await;
        let mut answer = Vec::new();
        let _ = within(caller.stream.read_to_end(&mut answer)).await; // the end may be a reset
        assert_eq!(answer, b"", "{}", bytes.escape_ascii());
    }
    assert_eq!(id.app.seen().len(), 0);
    let refused = format!("tollgate_connections_refused_total{{reason=\"proxy_header\"}} {count}");
    until(async || id.rig.metrics().await.lines().any(|line| line == refused)).await;
}

/// From everywhere else these bytes are no HTTP: a caller cannot name itself.
#[tokio::test]
async fn i15_a_caller_that_is_no_balancer_cannot_write_the_header() {
    let id = behind_balancer("identity: []", "127.0.0.2").await;
    let mut caller = proxied(&id, &v4([192, 0, 2, 1])).await;
    caller.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let answer = caller.rest().await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(id.app.seen().len(), 0);
    assert_eq!(id.left("").await, 999_999, "its own requests need no header");
    let mut balancer = id.rig.connect_from([127, 0, 0, 2]).await;
    within(balancer.stream.write_all(&v4([192, 0, 2, 1]))).await.unwrap();
    assert_eq!(left(&mut balancer, "").await, 999_999);
}
