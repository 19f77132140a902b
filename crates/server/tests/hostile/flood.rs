//! HTTP/2 as an attack, whatever is asked over it: what is sent, and how it ends.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::caller::Caller;
use crate::frames::{
    CONTINUATION, DATA, Frames, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE, begin, frame,
};

pub const ENHANCE_YOUR_CALM: u32 = 11;
/// 200, from the static table.
pub const OK: Option<u8> = Some(0x88);
/// 400, likewise.
pub const BAD_REQUEST: Option<u8> = Some(0x8c);

/// How a flooded connection ended.
#[derive(Debug, PartialEq)]
pub enum End {
    /// It was told to go away, with this code.
    Away(u32),
    /// It was just closed.
    Closed,
    /// Everything was taken in, and it is still open.
    Open,
}

/// Pages of this process, all tests that run at the same time included: good for bounds that are far away.
pub fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Begins a connection with a frame, sends all the pieces, reading what comes back, and looks how it ends.
pub async fn flood(at: SocketAddr, first: Vec<u8>, pieces: impl Iterator<Item = Vec<u8>> + Send + 'static) -> End {
    let (reading, mut writing) = Caller::connect(at).await.stream.into_split();
    let write = tokio::spawn(async move {
        for piece in [begin(&[]), first].into_iter().chain(pieces) {
            if writing.write_all(&piece).await.is_err() {
                return None;
            }
        }
        Some(writing)
    });
    let mut caller = Caller::over(tokio::io::join(reading, tokio::io::sink()));
    let mut frames = Frames::default();
    let end = loop {
        match timeout(Duration::from_millis(300), frames.next(&mut caller)).await {
            Ok(Some(frame)) => {
                if let Some(code) = frame.goaway().filter(|code| *code != 0) {
                    break End::Away(code);
                }
            }
            Ok(None) => break End::Closed,
            Err(_) if write.is_finished() => break End::Open,
            Err(_) => {}
        }
    };
    write.abort();
    end
}

/// What became of the first stream: the first byte of its answer's head, or none if it was reset or the connection ended.
pub async fn outcome(caller: &mut Caller) -> Option<u8> {
    let mut frames = Frames::default();
    loop {
        match frames.next(caller).await {
            Some(frame) if frame.kind == HEADERS => return frame.payload.first().copied(),
            Some(frame) if frame.kind == RST_STREAM || frame.goaway().is_some() => return None,
            Some(_) => {}
            None => return None,
        }
    }
}

/// G02: 64 MiB of a head that goes on and on.
pub fn continuations() -> impl Iterator<Item = Vec<u8>> + Send {
    let field = [b"\x00\x01a\x7f\x81\x7e".as_slice(), &[b'b'; 16_000]].concat();
    (0..4096).map(move |_| frame(CONTINUATION, 0, 1, &field))
}

/// G03: a head with a field that is kept in the table once, and then named two thousand times.
pub fn bomb(mut head: Vec<u8>) -> Vec<u8> {
    head.extend(b"\x40\x01a\x7f\x81\x0f"); // literal, kept: `a`, then 127 + 1 + 15 × 128 bytes
    head.extend([b'b'; 2048]);
    head.extend([0xbe; 2000]); // the newest of the table, again and again
    head
}

/// G04: frames that cost little to send.
pub fn small_frames() -> [Vec<u8>; 6] {
    [
        frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]),
        frame(PING, 0, 0, b"12345678"),
        frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 7]),
        frame(DATA, 0, 1, b""),
        frame(WINDOW_UPDATE, 0, 0, &1u32.to_be_bytes()),
        frame(0xbe, 0, 0, b"what is this?"),
    ]
}

/// G08: a head with fields that HTTP/1 could not even carry, and one that says nothing.
pub fn odd_heads(head: &[u8]) -> Vec<Vec<u8>> {
    let fields: [&[u8]; 6] = [
        b"\x00\x01A\x01b",                       // upper case
        b"\x00\x0aconnection\x0akeep-alive",     // of HTTP/1
        b"\x00\x11transfer-encoding\x07chunked", // of HTTP/1
        b"\x00\x01a\x04b\r\nc",
        b"\x00\x0econtent-length\x0299",
        b"\x00\x05:path\x05/live",
    ];
    let mut heads: Vec<Vec<u8>> = fields.iter().map(|field| [head, field].concat()).collect();
    heads.push(vec![0x83, 0x86]); // no path
    heads
}

/// G09, H16, H05: heads that name two hosts, none that is one, or a length that could be read in two ways. `head` has the
/// authority `x`.
pub fn ambiguous_heads(head: &[u8]) -> Vec<Vec<u8>> {
    let fields: [&[u8]; 7] = [
        b"\x00\x04host\x01y",
        b"\x00\x04host\x03x:1",
        b"\x00\x04host\x03a@x",
        b"\x00\x04host\x03x,x",
        b"\x00\x04host\x00",
        b"\x00\x04host\x01x\x00\x04host\x01x",
        b"\x00\x04host\x01x\x00\x04host\x01y",
    ];
    let mut heads: Vec<Vec<u8>> = fields.iter().map(|field| [head, field].concat()).collect();
    let at = head.windows(3).position(|three| three == b"\x01\x01x").expect("an authority");
    for authority in [&b"\x01\x03a@x"[..], b"\x01\x03x,x", b"\x01\x03x:y"] {
        heads.push([&head[..at], authority, &head[at + 3..]].concat());
    }
    heads
}
