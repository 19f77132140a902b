//! Conformance of WebSocket through the gateway, frame by frame over raw sockets (RFC 6455): what a client may send, what it
//! may not, and how the server ends the connection for it. Everything is done twice, to the server itself and through the
//! gateway: both say the same.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::app::App;
use crate::rig::{Rig, until, within};
use crate::servers::NodeApi;

const SLOTS: &str =
    "rules: [{ name: slots, key_by: ip, limit: { algorithm: concurrency, slots: 50, slot_ttl: 1h } }]\n";

const FIN: u8 = 0x80;
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A frame of a client: its first byte, and its payload behind the shortest length that says it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    framed(first, payload, length(payload.len()), Some([0x37, 0xfa, 0x21, 0x3d]))
}

fn framed(first: u8, payload: &[u8], length: Vec<u8>, mask: Option<[u8; 4]>) -> Vec<u8> {
    let mut bytes = vec![first];
    bytes.extend(length);
    bytes[1] |= if mask.is_some() { 0x80 } else { 0 };
    bytes.extend(mask.unwrap_or_default().iter().take(if mask.is_some() { 4 } else { 0 }));
    let mask = mask.unwrap_or_default();
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// A length of seven bits, sixteen, or sixty-four.
fn length(payload: usize) -> Vec<u8> {
    match payload {
        0..126 => vec![payload as u8],
        126..65_536 => [vec![126], (payload as u16).to_be_bytes().to_vec()].concat(),
        _ => [vec![127], (payload as u64).to_be_bytes().to_vec()].concat(),
    }
}

fn close(code: u16, reason: &str) -> Vec<u8> {
    frame(FIN | CLOSE, &[&code.to_be_bytes(), reason.as_bytes()].concat())
}

/// A frame of the server: first byte and payload.
type Received = (u8, Vec<u8>);

fn closed(code: u16, reason: &str) -> Received {
    (FIN | CLOSE, [&code.to_be_bytes(), reason.as_bytes()].concat())
}

/// What a client sends, in one piece or byte by byte, and the frames that come back, the closing one included.
struct Case {
    name: String,
    sent: Vec<u8>,
    received: Vec<Received>,
}

fn case(name: impl Into<String>, sent: &[Vec<u8>], received: Vec<Received>) -> Case {
    Case { name: name.into(), sent: sent.concat(), received }
}

/// The server ends the connection for what it was sent. Reasons are its own, so that only the code is compared.
fn broken(name: impl Into<String>, sent: &[Vec<u8>], code: u16) -> Case {
    case(name, sent, vec![closed(code, "")])
}

fn messages() -> Vec<Case> {
    let mut cases = Vec::new();
    for length in [0, 1, 124, 125, 126, 127, 128, 65_535, 65_536, 200_000] {
        for kind in [TEXT, BINARY] {
            let payload = vec![b'*'; length];
            let sent = [frame(FIN | kind, &payload), close(1000, "")];
            cases.push(case(format!("{length} bytes of {kind}"), &sent, vec![(FIN | kind, payload), closed(1000, "")]));
        }
    }
    let greek = "κόσμε".as_bytes();
    let halves = [frame(TEXT, &greek[..3]), frame(FIN | CONTINUATION, &greek[3..]), close(1000, "")];
    cases.push(case("a letter across two fragments", &halves, vec![(FIN | TEXT, greek.to_vec()), closed(1000, "")]));
    let parts = [
        frame(TEXT, b"one "),
        frame(FIN | PING, b"between"),
        frame(CONTINUATION, b"two "),
        frame(CONTINUATION, b""),
        frame(FIN | PING, b""),
        frame(FIN | CONTINUATION, b"three"),
        close(1000, ""),
    ];
    let answers = vec![
        (FIN | PONG, b"between".to_vec()),
        (FIN | PONG, Vec::new()),
        (FIN | TEXT, b"one two three".to_vec()),
        closed(1000, ""),
    ];
    cases.push(case("control frames between fragments", &parts, answers));
    let many: Vec<Vec<u8>> = (0..500).map(|_| frame(CONTINUATION, b"x")).collect();
    let sent = [vec![frame(BINARY, b"")], many, vec![frame(FIN | CONTINUATION, b""), close(1000, "")]].concat();
    cases.push(case("five hundred fragments", &sent, vec![(FIN | BINARY, vec![b'x'; 500]), closed(1000, "")]));
    let pings: Vec<Vec<u8>> = (0..10).map(|number| frame(FIN | PING, &[number; 125])).collect();
    let pongs = (0..10).map(|number| (FIN | PONG, vec![number; 125]));
    cases.push(case(
        "ten pings of 125 bytes",
        &[pings, vec![close(1000, "")]].concat(),
        pongs.chain([closed(1000, "")]).collect(),
    ));
    let pong = [frame(FIN | PONG, b"not asked for"), frame(FIN | TEXT, b"hi"), close(1000, "")];
    cases.push(case("a pong without a ping", &pong, vec![(FIN | TEXT, b"hi".to_vec()), closed(1000, "")]));
    cases
}

fn closes() -> Vec<Case> {
    let mut cases = Vec::new();
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999] {
        cases.push(case(format!("close {code}"), &[close(code, "why")], vec![closed(code, "")]));
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535] {
        cases.push(broken(format!("close {code}, which no client may send"), &[close(code, "")], 1002));
    }
    cases.push(case("close without a code", &[frame(FIN | CLOSE, b"")], vec![(FIN | CLOSE, Vec::new())]));
    cases.push(case("close with the longest reason", &[close(1000, &"r".repeat(123))], vec![closed(1000, "")]));
    cases.push(broken("close with half a code", &[frame(FIN | CLOSE, &[3])], 1002));
    cases.push(broken("close with a reason that is no text", &[frame(FIN | CLOSE, &[3, 0xe8, 0xff])], 1007));
    cases.push(case(
        "what follows a close is not read",
        &[close(1000, ""), frame(FIN | TEXT, b"late")],
        vec![closed(1000, "")],
    ));
    cases
}

fn violations() -> Vec<Case> {
    let mut cases = Vec::new();
    for bit in [0x40, 0x20, 0x10] {
        cases.push(broken(format!("reserved bit {bit:#x}"), &[frame(FIN | bit | TEXT, b"x")], 1002));
    }
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        cases.push(broken(format!("opcode {opcode}"), &[frame(FIN | opcode, b"x")], 1002));
    }
    let unmasked = framed(FIN | TEXT, b"x", length(1), None);
    let long_ping = frame(FIN | PING, &[0; 126]);
    cases.push(broken("a frame without a mask", &[unmasked], 1002));
    cases.push(broken("a ping of 126 bytes", &[long_ping], 1002));
    cases.push(broken("a ping in fragments", &[frame(PING, b"x")], 1002));
    cases.push(broken("a close in fragments", &[frame(CLOSE, &[3, 0xe8])], 1002));
    cases.push(broken("a continuation of nothing", &[frame(FIN | CONTINUATION, b"x")], 1002));
    cases.push(broken("a message within another", &[frame(TEXT, b"x"), frame(FIN | TEXT, b"y")], 1002));
    for bad in [&[0xff][..], &[0xc0, 0xaf], &[0xed, 0xa0, 0x80], &[0xf4, 0x90, 0x80, 0x80], &[0xce]] {
        cases.push(broken(format!("text {bad:x?}"), &[frame(FIN | TEXT, bad)], 1007));
    }
    let huge = framed(FIN | BINARY, b"", [vec![127], u64::MAX.to_be_bytes().to_vec()].concat(), Some([0; 4]));
    cases.push(broken("a length beyond every bound", &[huge], 1009));
    cases
}

/// Opens a connection, and returns it behind the agreement of the server.
async fn open(address: SocketAddr) -> TcpStream {
    let mut stream = within(TcpStream::connect(address)).await.unwrap();
    let ask = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
               Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    within(stream.write_all(ask.as_bytes())).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(within(stream.read_u8()).await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.to_lowercase().contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    stream
}

/// Sends all of it, and reads frames until the server closes.
async fn talk(address: SocketAddr, sent: &[u8], in_bytes: bool) -> Vec<Received> {
    let stream = open(address).await;
    stream.set_nodelay(true).unwrap();
    let (mut from, mut to) = stream.into_split();
    let pieces: Vec<Vec<u8>> = sent.chunks(if in_bytes { 1 } else { sent.len().max(1) }).map(<[u8]>::to_vec).collect();
    // Beside reading: the server may end the connection before it has read all of it.
    let sending = tokio::spawn(async move {
        for piece in pieces {
            if to.write_all(&piece).await.is_err() {
                break;
            }
        }
        to
    });
    let (mut read, mut frames) = (Vec::new(), Vec::new());
    within(async {
        while frames.last().is_none_or(|(first, _)| *first != FIN | CLOSE) {
            assert_ne!(from.read_buf(&mut read).await.unwrap(), 0, "it says why before it closes: {frames:?}");
            while let Some((frame, end)) = first_frame(&read) {
                frames.push(frame);
                read.drain(..end);
            }
        }
    })
    .await;
    drop(within(sending).await.unwrap());
    frames
}

/// The first frame that is there, and where it ends.
fn first_frame(read: &[u8]) -> Option<(Received, usize)> {
    let short = *read.get(1)?;
    assert_eq!(short & 0x80, 0, "servers do not mask");
    let (length, start) = match short {
        126 => (u64::from(u16::from_be_bytes(read.get(2..4)?.try_into().unwrap())), 4),
        127 => (u64::from_be_bytes(read.get(2..10)?.try_into().unwrap()), 10),
        short => (u64::from(short), 2),
    };
    let end = start + length as usize;
    Some(((read[0], read.get(start..end)?.to_vec()), end))
}

/// Without the reasons of closing frames.
fn coded(mut frames: Vec<Received>) -> Vec<Received> {
    for (first, payload) in &mut frames {
        if *first == FIN | CLOSE {
            payload.truncate(2);
        }
    }
    frames
}

#[tokio::test]
async fn every_frame_passes_and_every_violation_ends_as_the_server_says() {
    let api = NodeApi::start().await;
    let rig = Rig::start(SLOTS, &api.url());
    let server: SocketAddr = api.url().strip_prefix("http://").unwrap().parse().unwrap();
    let cases: Vec<Case> = [messages(), closes(), violations()].into_iter().flatten().collect();
    for Case { name, sent, received } in &cases {
        let direct = talk(server, sent, false).await;
        assert_eq!(coded(direct.clone()), *received, "{name}: the server itself");
        assert_eq!(talk(rig.gateway, sent, false).await, direct, "{name}: through the gateway");
        if sent.len() < 1_000 {
            assert_eq!(talk(rig.gateway, sent, true).await, direct, "{name}: byte by byte");
        }
    }
    println!("WebSocket: {} cases, each to the server and through the gateway", cases.len());
    until(async || rig.get("/x").await.field("Ratelimit").is_some_and(|left| left.contains("r=49"))).await;
}

/// The gateway takes no frame apart: masks stay what they are, and so does what is no frame at all.
#[tokio::test]
async fn frames_pass_byte_for_byte_in_both_directions() {
    let app = App::start().await;
    let rig = Rig::start(SLOTS, &app.url());
    let mut caller = rig.connect().await;
    caller.send("GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n").await;
    assert!(caller.head().await.starts_with("HTTP/1.1 101 "));
    for payload in [0, 1, 125, 126, 65_535, 65_536, 1 << 20] {
        let payload: Vec<u8> = (0..payload).map(|at| (at * 7) as u8).collect();
        for bytes in [frame(FIN | BINARY, &payload), framed(0x7f, &payload, length(payload.len()), None)] {
            let (mut from, mut to) = caller.stream.split();
            let mut back = vec![0; bytes.len()];
            let (written, read) =
                within(async { tokio::join!(to.write_all(&bytes), from.read_exact(&mut back)) }).await;
            assert!(written.is_ok() && read.is_ok());
            assert!(back == bytes, "{} bytes", bytes.len());
        }
    }
}
