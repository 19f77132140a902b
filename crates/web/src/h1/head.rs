//! Parses HTTP/1 heads: accepts what `httparse` accepts, minus everything that two readers could understand
//! differently.

use httparse::{EMPTY_HEADER, Error, Status};

use crate::authority::Authority;
use crate::head::{ASTERISK, HOST_BAD, HOSTS_DIFFER, HOSTS_MANY, LENGTH_BAD, absolute, is_length, split_target};
use crate::head::{Head, HttpError};
use crate::received_headers::ReceivedHeaders;

/// A parsed head, and the framing of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedHead<'a> {
    /// The fields that handlers read.
    pub head: Head<'a>,
    /// Length of the head, including the empty line.
    pub bytes: usize,
    /// Length of the body.
    pub length: BodyLength,
    /// The connection stays open after the response.
    pub keep_alive: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// HTTP/1.0.
    pub is_http10: bool,
}

/// Length of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// A known number of bytes.
    Known(u64),
    /// In chunks, until the last one.
    Chunked,
}

/// Parses the head at the start of `bytes`; `None` if more bytes are needed.
pub fn parse(bytes: &[u8], max_head: usize, max_headers: usize) -> Result<Option<ParsedHead<'_>>, HttpError> {
    const INLINE: usize = 32;
    let bytes = bytes.get(..=max_head).unwrap_or(bytes); // the rest may be a hundred pipelined requests
    let mut few = [EMPTY_HEADER; INLINE];
    let few = few.get_mut(..max_headers.min(INLINE)).unwrap_or_default();
    match parse_into(few, bytes, max_head) {
        // Too many fields for the stack, though perhaps not too many to allow: rare, so it may allocate.
        Err(HttpError::HeadTooLarge) if max_headers > INLINE => {
            parse_into(&mut vec![EMPTY_HEADER; max_headers], bytes, max_head)
        }
        other => other,
    }
}

fn parse_into<'b>(
    fields: &mut [httparse::Header<'b>],
    bytes: &'b [u8],
    max_head: usize,
) -> Result<Option<ParsedHead<'b>>, HttpError> {
    let mut request = httparse::Request::new(fields);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) if length <= max_head => length,
        Ok(Status::Partial) if bytes.len() <= max_head => return Ok(None),
        Ok(_) => return Err(too_large(bytes, max_head)),
        Err(Error::TooManyHeaders) => return Err(HttpError::HeadTooLarge),
        Err(Error::Version) => return Err(HttpError::Version),
        Err(Error::Token) => return Err(HttpError::Malformed("the request line is malformed")),
        Err(Error::NewLine | Error::HeaderName) => return Err(HttpError::Malformed("a header field is malformed")),
        Err(Error::HeaderValue) => return Err(HttpError::Malformed("a header field has forbidden bytes in its value")),
        Err(Error::Status) => return Err(HttpError::Malformed("the request line is malformed")),
    };
    if has_bare_line_feed(bytes.get(..length).unwrap_or_default()) {
        return Err(HttpError::Malformed("a line does not end in CR LF"));
    }
    let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    let is_http10 = request.version == Some(0);
    let mut reader = Reader { is_http10, keep_alive: !is_http10, ..Reader::default() };
    for field in request.headers.iter() {
        reader.field(field, bytes)?;
    }
    let length_of_body = reader.length()?;
    reader.host(target)?;
    let (path, query) = split_target(target).ok_or(HttpError::Malformed("the target is not a path"))?;
    if path == "*" && method != "OPTIONS" {
        return Err(HttpError::Malformed(ASTERISK));
    }
    let Reader { head, keep_alive, expects_continue, .. } = reader;
    let headers = ReceivedHeaders::Http1(bytes.get(..length).unwrap_or_default());
    let head = Head { method, path, query, headers, ..head };
    Ok(Some(ParsedHead { head, bytes: length, length: length_of_body, keep_alive, expects_continue, is_http10 }))
}

/// Collects the fields that handlers and framing need.
#[derive(Default)]
struct Reader<'a> {
    head: Head<'a>,
    is_http10: bool,
    keep_alive: bool,
    expects_continue: bool,
    hosts: usize,
    content_length: Option<u64>,
    chunked: bool,
    closes: bool,
}

impl<'a> Reader<'a> {
    fn field(&mut self, field: &httparse::Header<'a>, bytes: &[u8]) -> Result<(), HttpError> {
        let (name, value) = (field.name, field.value);
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        // By length first: that rules out most other fields with one comparison.
        match name.len() {
            4 if is("host") => (self.hosts, self.head.host) = (self.hosts + 1, Some(value)),
            6 if is("accept") => self.head.accept = Some(value),
            6 if is("expect") => self.expect(value)?,
            6 if is("origin") => self.once(|head| &mut head.origin, value, "there is more than one Origin"),
            8 if is("if-match") => self.once(|head| &mut head.if_match, value, "there is more than one If-Match"),
            10 if is("connection") => self.connection(value),
            12 if is("content-type") => {
                self.once(|head| &mut head.content_type, value, "there is more than one Content-Type");
            }
            13 if is("authorization") => {
                self.once(|head| &mut head.authorization, value, "there is more than one Authorization");
            }
            13 if is("if-none-match") => {
                self.once(|head| &mut head.if_none_match, value, "there is more than one If-None-Match");
            }
            14 if is("content-length") => self.content_length(value)?,
            14 if is("sec-fetch-site") => {
                self.once(|head| &mut head.sec_fetch_site, value, "there is more than one Sec-Fetch-Site");
            }
            15 if is("idempotency-key") => {
                self.once(|head| &mut head.idempotency_key, value, "there is more than one Idempotency-Key");
            }
            15 if is("request-timeout") => {
                self.once(|head| &mut head.request_timeout, value, "there is more than one Request-Timeout");
            }
            16 if is("content-encoding") => {
                self.once(|head| &mut head.content_encoding, value, "there is more than one Content-Encoding");
            }
            17 if is("transfer-encoding") => self.transfer_encoding(value, bytes)?,
            _ => {}
        }
        Ok(())
    }

    /// Stores a field that may be sent once. A repetition records the error `repeated`; the handler knows whether it
    /// matters.
    fn once(
        &mut self,
        field: for<'h> fn(&'h mut Head<'a>) -> &'h mut Option<&'a [u8]>,
        value: &'a [u8],
        repeated: &'static str,
    ) {
        if field(&mut self.head).replace(value).is_some() {
            self.head.repeated = Some(repeated);
        }
    }

    fn expect(&mut self, value: &[u8]) -> Result<(), HttpError> {
        match value.eq_ignore_ascii_case(b"100-continue") {
            true => self.expects_continue = !self.is_http10, // HTTP/1.0 has no interim responses
            false => return Err(HttpError::Expectation),
        }
        Ok(())
    }

    /// `close` wins over `keep-alive`, in any order and in any of several fields.
    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            self.closes |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
        self.keep_alive &= !self.closes;
    }

    /// Exactly one number.
    fn content_length(&mut self, value: &[u8]) -> Result<(), HttpError> {
        let number = is_length(value).then(|| str::from_utf8(value).ok()?.parse().ok()).flatten();
        match (number, self.content_length) {
            (Some(number), None) => self.content_length = Some(number),
            (Some(_), Some(_)) => return Err(HttpError::Malformed("there is more than one Content-Length")),
            (None, _) => return Err(HttpError::Malformed(LENGTH_BAD)),
        }
        Ok(())
    }

    /// Exactly one host; an absolute target must name the same one.
    fn host(&mut self, target: &'a str) -> Result<(), HttpError> {
        let parse = |sent| Authority::parse(sent).ok_or(HttpError::Malformed(HOST_BAD));
        let field = self.head.host.map(parse).transpose()?;
        let Some((default_port, rest)) = absolute(target) else { return Ok(()) };
        let sent = rest.split(['/', '?']).next().unwrap_or_default().as_bytes();
        let authority = parse(sent)?;
        if field.is_some_and(|field| !field.is_same(authority, default_port)) {
            return Err(HttpError::Malformed(HOSTS_DIFFER));
        }
        self.head.host.get_or_insert(sent);
        Ok(())
    }

    /// Exactly `chunked`, once, without extra white space, which some readers would take for part of the value.
    fn transfer_encoding(&mut self, value: &[u8], bytes: &[u8]) -> Result<(), HttpError> {
        let end = (value.as_ptr() as usize + value.len()).wrapping_sub(bytes.as_ptr() as usize);
        let start = (value.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize);
        let tight = bytes.get(end) == Some(&b'\r')
            && bytes.get(..start).is_some_and(|before| {
                before.ends_with(b":")
                    || (before.ends_with(b" ") && !before.ends_with(b"  ") && !before.ends_with(b"\t "))
            });
        match value.eq_ignore_ascii_case(b"chunked") && tight && !self.chunked {
            true => self.chunked = true,
            false => return Err(HttpError::Malformed("Transfer-Encoding is not exactly `chunked`")),
        }
        Ok(())
    }

    fn length(&self) -> Result<BodyLength, HttpError> {
        match (self.content_length, self.chunked) {
            _ if self.hosts > 1 || (self.hosts == 0 && !self.is_http10) => Err(HttpError::Malformed(HOSTS_MANY)),
            (Some(_), true) => Err(HttpError::Malformed("Content-Length and Transfer-Encoding exclude each other")),
            (None, true) if self.is_http10 => Err(HttpError::Malformed("HTTP/1.0 has no Transfer-Encoding")),
            (None, true) => Ok(BodyLength::Chunked),
            (length, false) => Ok(BodyLength::Known(length.unwrap_or(0))),
        }
    }
}

/// The error for a head over the limit: the target is too long if not even the request line ends.
fn too_large(bytes: &[u8], max_head: usize) -> HttpError {
    match bytes.iter().take(max_head).any(|byte| *byte == b'\n') {
        true => HttpError::HeadTooLarge,
        false => HttpError::TargetTooLong,
    }
}

/// True if a line ends in a bare LF, which `httparse` takes for a line end and other readers for part of the line.
fn has_bare_line_feed(head: &[u8]) -> bool {
    // No early exit: the compiler vectorizes only a loop without one.
    let pairs = head.iter().zip(head.get(1..).unwrap_or_default());
    let inside = pairs.fold(false, |found, (before, byte)| found | ((*byte == b'\n') & (*before != b'\r')));
    inside || head.first() == Some(&b'\n')
}

#[cfg(test)]
mod tests;
