//! HTTP/2 by hand: frames as no well-behaved client sends them.

use tokio::io::{AsyncRead, AsyncWrite};

use crate::caller::Caller;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The beginning of a connection, with these settings.
pub fn begin(settings: &[u8]) -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, settings)].concat()
}

/// A header block: `method` is an index of the static table, 2 for GET and 3 for POST.
pub fn block(method: u8, path: &[u8]) -> Vec<u8> {
    let mut block = vec![0x80 | method, 0x86, 0x01, 1, b'x', 0x04, u8::try_from(path.len()).unwrap()];
    block.extend(path);
    block
}

/// The number of a client's stream, counted from zero.
pub const fn stream(count: u32) -> u32 {
    1 + 2 * count
}

/// GET, whole.
pub fn get(count: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream(count), &block(2, path.as_bytes()))
}

#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// The code of a GOAWAY.
    pub fn goaway(&self) -> Option<u32> {
        let code = self.payload.get(4..8).filter(|_| self.kind == GOAWAY)?;
        Some(u32::from_be_bytes(code.try_into().unwrap()))
    }
}

/// Takes frames out of what a connection says.
#[derive(Default)]
pub struct Frames(Vec<u8>);

impl Frames {
    /// The next frame; `None` when the connection has ended, however it did.
    pub async fn next<S: AsyncRead + AsyncWrite + Unpin>(&mut self, caller: &mut Caller<S>) -> Option<Frame> {
        loop {
            if let Some(frame) = self.take() {
                return Some(frame);
            }
            match caller.bytes().await {
                Ok(bytes) if !bytes.is_empty() => self.0.extend(bytes),
                _ => return None,
            }
        }
    }

    fn take(&mut self) -> Option<Frame> {
        let (head, rest) = self.0.split_first_chunk::<9>()?;
        let [a, b, c, kind, _, stream @ ..] = *head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        let payload = rest.get(..length)?.to_vec();
        self.0.drain(..9 + length);
        Some(Frame { kind, stream: u32::from_be_bytes(stream) & 0x7fff_ffff, payload })
    }
}
