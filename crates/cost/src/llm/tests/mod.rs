//! Tables of real-looking traffic, per dialect.

mod charges;
mod counting;
mod endings;
mod passing;
mod requests;
mod samples;
mod streams;
mod tokenizer;

use bytes::Bytes;

use super::{LlmRequest, LlmSpec, Passage, UsageReader};

/// The call that a request is.
fn call(path: &str, body: &str) -> LlmRequest {
    LlmRequest::read(&LlmSpec::default(), path, body.as_bytes()).unwrap().unwrap()
}

/// A reader of the events that answer a request.
fn events(request: &LlmRequest) -> UsageReader {
    UsageReader::new(request, &LlmSpec::default(), 200, Some("text/event-stream; charset=utf-8"))
}

/// Feeds a body in pieces of this size; what was passed on.
fn feed(reader: &mut UsageReader, body: &[u8], size: usize) -> Vec<Passage> {
    let mut out = Vec::new();
    for piece in body.chunks(size.max(1)) {
        reader.push(Bytes::copy_from_slice(piece), &mut out);
    }
    reader.end(&mut out);
    out
}

/// The bytes of all passages.
fn passed(passages: &[Passage]) -> String {
    let bytes: Vec<u8> = passages.iter().flat_map(|passage| passage.bytes.to_vec()).collect();
    String::from_utf8(bytes).unwrap()
}
