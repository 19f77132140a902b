//! HTTP/1.1: frames a request, and parses a reply.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Response, Status};

use crate::reply::{MalformedReply, ParsedReply, REPLY_MAX, ReplyVerdict};
use crate::request::LoadRequest;
use crate::template::TemplateText;

/// Maximum number of headers of a reply.
const HEADERS_MAX: usize = 64;
/// Precedes the decision in the JSON of Tollgate and of most other limiters.
const MARK: &[u8] = b"\"allowed\":";

/// The head and the body of the request.
pub fn frame(request: &LoadRequest, host: &str) -> [TemplateText; 2] {
    let body = TemplateText::new(&request.body);
    let has = |name: &str| request.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    if !has("host") {
        head.push_str(&format!("host: {host}\r\n"));
    }
    if !body.bytes.is_empty() && !has("content-type") {
        head.push_str("content-type: application/json\r\n");
    }
    for (name, value) in &request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.bytes.is_empty() || request.method != "GET" {
        head.push_str(&format!("content-length: {}\r\n", body.bytes.len()));
    }
    head.push_str("\r\n");
    [TemplateText::new(head), body]
}

/// How the end of a reply's body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    /// Up to the end of the connection, which cannot be told from an incomplete reply.
    None,
}

/// The first reply, without interim ones (1xx); `None` if it is incomplete.
pub fn find(bytes: &[u8]) -> Result<Option<ParsedReply>, MalformedReply> {
    let mut start = 0;
    loop {
        let rest = bytes.get(start..).unwrap_or_default();
        match find_one(rest)? {
            Some((status, reply)) if (100..200).contains(&status) => start += reply.length,
            Some((_, reply)) => return Ok(Some(ParsedReply { length: start + reply.length, ..reply })),
            None => return Ok(None),
        }
    }
}

fn find_one(bytes: &[u8]) -> Result<Option<(u16, ParsedReply)>, MalformedReply> {
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; HEADERS_MAX];
    let mut response = Response::new(&mut []);
    let parsed = ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut headers);
    let head = match parsed {
        Ok(Status::Complete(head)) => head,
        Ok(Status::Partial) => return Ok(None),
        Err(_) => return Err(MalformedReply("not a response head")),
    };
    let status = response.code.unwrap_or(0);
    if status == 101 {
        return Err(MalformedReply("the server wants to switch the protocol"));
    }
    let (framing, is_last) = read_headers(response.headers, response.version == Some(0))?;
    let after = bytes.get(head..).unwrap_or_default();
    let length = match framing {
        _ if status < 200 || status == 204 || status == 304 => Some(0),
        Framing::Length(length) if length > REPLY_MAX => return Err(MalformedReply("the reply is too long")),
        Framing::Length(length) => (after.len() >= length).then_some(length),
        Framing::Chunked => chunked(after)?,
        Framing::None => return Err(MalformedReply("the reply has no length")),
    };
    let Some(length) = length else { return Ok(None) };
    let body = after.get(..length).unwrap_or_default();
    Ok(Some((status, ParsedReply { length: head + length, verdict: verdict(status, body), is_last })))
}

fn read_headers(headers: &[Header<'_>], is_old: bool) -> Result<(Framing, bool), MalformedReply> {
    let (mut framing, mut is_last) = (Framing::None, is_old);
    for header in headers {
        // Compares the length first: most headers are none of these three.
        match header.name.len() {
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                let length = std::str::from_utf8(header.value).ok().filter(|text| is_number(text));
                let length =
                    length.and_then(|text| text.parse().ok()).ok_or(MalformedReply("a length that is not a number"))?;
                if framing != Framing::None && framing != Framing::Length(length) {
                    return Err(MalformedReply("two lengths"));
                }
                framing = Framing::Length(length);
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                if framing != Framing::None || !header.value.eq_ignore_ascii_case(b"chunked") {
                    return Err(MalformedReply("a transfer encoding other than chunked, or beside a length"));
                }
                framing = Framing::Chunked;
            }
            10 if header.name.eq_ignore_ascii_case("connection") => {
                is_last = match header.value {
                    value if value.eq_ignore_ascii_case(b"close") => true,
                    value if value.eq_ignore_ascii_case(b"keep-alive") => false,
                    _ => is_last,
                };
            }
            _ => {}
        }
    }
    Ok((framing, is_last))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Length of a chunked body with its framing; `None` if it is incomplete.
fn chunked(bytes: &[u8]) -> Result<Option<usize>, MalformedReply> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let (line, size) = match httparse::parse_chunk_size(rest) {
            Ok(Status::Complete(found)) => found,
            Ok(Status::Partial) => return Ok(None),
            Err(_) => return Err(MalformedReply("a chunk without a size")),
        };
        let size = usize::try_from(size).ok().filter(|size| *size <= REPLY_MAX);
        let size = size.ok_or(MalformedReply("the reply is too long"))?;
        at += line;
        if size == 0 {
            return Ok(trailers(bytes.get(at..).unwrap_or_default()).map(|length| at + length));
        }
        at += size;
        match bytes.get(at..at + 2) {
            Some(b"\r\n") => at += 2,
            Some(_) => return Err(MalformedReply("a chunk longer than its size")),
            None => return Ok(None),
        }
    }
}

/// Length of the trailers, including the empty line that ends a chunked body.
fn trailers(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(b"\r\n") {
        return Some(2);
    }
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

/// The decision: by status, and for 2xx by the first `"allowed":` in the body, if there is one.
fn verdict(status: u16, body: &[u8]) -> ReplyVerdict {
    match status {
        200..=299 if first_mark(body).is_some_and(|after| after.starts_with(b"false")) => ReplyVerdict::Denied,
        200..=299 => ReplyVerdict::Allowed,
        429 => ReplyVerdict::Denied,
        status => ReplyVerdict::Failed(status),
    }
}

fn first_mark(body: &[u8]) -> Option<&[u8]> {
    let mut rest = body;
    while let Some(at) = rest.iter().position(|byte| *byte == b'"') {
        rest = rest.get(at..)?;
        if let Some(after) = rest.strip_prefix(MARK) {
            return Some(after.trim_ascii_start());
        }
        rest = rest.get(1..)?;
    }
    None
}

#[cfg(test)]
mod tests;
