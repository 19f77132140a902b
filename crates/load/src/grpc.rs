//! gRPC over cleartext HTTP/2 with prior knowledge: unary calls, framed once.
//!
//! The first request of a connection adds its headers to the server's HPACK table; later requests refer to them, as
//! real clients do, so that requests differ in nothing but the key and the stream number. The first request is not
//! counted.

mod hpack;
mod message;
mod streams;
mod wire;

pub use message::ProtobufMessage;
pub use streams::Streams;

use self::hpack::Headers;
use self::wire::{END_HEADERS, END_STREAM, FRAME_MAX, FrameKind, HEAD, PREFIX, WINDOW_INITIAL, WINDOW_MAX};
use crate::error::LoadError;
use crate::request::LoadRequest;
use crate::template::{MessageTemplate, TemplateText};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Longest path: the server's header table must hold it.
const PATH_MAX: usize = 1 << 10;
/// Offset of the stream number in a frame.
const STREAM_AT: usize = 5;

/// Calls of one method, framed.
#[derive(Debug)]
pub struct FramedCalls {
    /// The bytes of a call, patched and sent repeatedly.
    pub template: MessageTemplate,
    /// Bytes sent first on every connection: the preface, settings and the first call.
    pub opening: Vec<u8>,
    /// The initial state of a connection's streams.
    pub streams: Streams,
}

/// Frames the opening with the first call, and the template of all others.
pub fn frame(request: &LoadRequest, host: &str, copies: usize) -> Result<FramedCalls, LoadError> {
    let path = request.path.as_str();
    let is_method = path.matches('/').count() == 2 && !path.ends_with('/') && !path.contains("//");
    if request.method != "POST" || !is_method || path.len() > PATH_MAX || path.contains('{') {
        return Err(LoadError::invalid(format!("{path:?} names no method: write it like /package.Service/Method")));
    }
    let length = TemplateText::len_of(&request.body);
    let mut message = vec![0]; // not compressed
    message.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    message.extend_from_slice(&request.body);
    let mut headers = Headers::new(path, host);
    for (name, value) in &request.headers {
        headers.add(name, value);
    }
    let [first, later] = [headers.first(), headers.later()].map(|block| call(&block, &message));
    let Some((first, later)) = first.zip(later) else {
        return Err(LoadError::invalid(format!("headers or message are too long: {FRAME_MAX} bytes go into a frame")));
    };
    let mut opening = opening();
    let on_first = |at: usize| opening.len() + at + STREAM_AT;
    let numbers = later.heads.map(|at| at + STREAM_AT);
    let places = first.heads.map(on_first);
    opening.extend_from_slice(&first.text.bytes);
    for at in places {
        if let Some(number) = opening.get_mut(at..at + 4) {
            number.copy_from_slice(&streams::FIRST.to_be_bytes());
        }
    }
    let template = MessageTemplate::new(&[later.text], copies).with_streams(&numbers);
    Ok(FramedCalls { template, opening, streams: Streams::new(PREFIX + length) })
}

/// The preface and settings of a client: no server push, and flow-control windows that never close.
fn opening() -> Vec<u8> {
    let setting = |name: u16, value: u32| [name.to_be_bytes().as_slice(), &value.to_be_bytes()].concat();
    let settings = [setting(wire::ENABLE_PUSH, 0), setting(wire::INITIAL_WINDOW, WINDOW_MAX)].concat();
    let mut bytes = PREFACE.to_vec();
    wire::put(&mut bytes, FrameKind::SETTINGS, 0, 0, &settings);
    wire::put(&mut bytes, FrameKind::WINDOW_UPDATE, 0, 0, &(WINDOW_MAX - WINDOW_INITIAL).to_be_bytes());
    bytes
}

/// The HEADERS and DATA frames of one call.
struct CallFrames {
    text: TemplateText,
    /// Offsets of the two frames.
    heads: [usize; 2],
}

/// `None` if headers or message do not fit into one frame.
fn call(block: &[u8], message: &[u8]) -> Option<CallFrames> {
    let (headers, data) = (TemplateText::len_of(block), TemplateText::len_of(message));
    if headers.max(data) > FRAME_MAX {
        return None;
    }
    let mut source = wire::head(headers, FrameKind::HEADERS, END_HEADERS, 0).to_vec();
    source.extend_from_slice(block);
    source.extend_from_slice(&wire::head(data, FrameKind::DATA, END_STREAM, 0));
    source.extend_from_slice(message);
    Some(CallFrames { text: TemplateText::new(source), heads: [0, HEAD + headers] })
}

#[cfg(test)]
mod tests;
