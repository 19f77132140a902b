//! The head of an HTTP/1 request as we accept it: what `httparse` takes, minus everything that two readers could
//! understand in two ways.

use httparse::{EMPTY_HEADER, Error, Status};

use super::authority::Authority;
use super::received::Received;

/// What is wrong with heads of either version of HTTP.
pub(super) const HOST_BAD: &str = "Host is not a host and perhaps a port";
pub(super) const HOSTS_MANY: &str = "there must be one Host";
pub(super) const HOSTS_DIFFER: &str = "the target names another host than Host does";
pub(super) const LENGTH_BAD: &str = "Content-Length is not a number";
pub(super) const ASTERISK: &str = "only OPTIONS is about the server as a whole";

/// Of a head, what the API looks at. The rest is read over, and can be asked for by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head<'a> {
    /// The method as it was sent.
    pub method: &'a str,
    /// The path, without query and, of an absolute target, without scheme and authority.
    pub path: &'a str,
    /// What follows the question mark.
    pub query: Option<&'a str>,
    /// The field `Authorization`.
    pub authorization: Option<&'a [u8]>,
    /// The field `Accept`.
    pub accept: Option<&'a [u8]>,
    /// The field `Content-Type`.
    pub content_type: Option<&'a [u8]>,
    /// The field `Content-Encoding`.
    pub content_encoding: Option<&'a [u8]>,
    /// The field `Host`; of HTTP/2, and of an absolute target without that field, the authority.
    pub host: Option<&'a [u8]>,
    /// The field `Origin`.
    pub origin: Option<&'a [u8]>,
    /// The field `Sec-Fetch-Site`.
    pub sec_fetch_site: Option<&'a [u8]>,
    /// The field `If-Match`.
    pub if_match: Option<&'a [u8]>,
    /// The field `If-None-Match`.
    pub if_none_match: Option<&'a [u8]>,
    /// The field `Idempotency-Key`.
    pub idempotency_key: Option<&'a [u8]>,
    /// The field `Request-Timeout`: how long the caller waits.
    pub request_timeout: Option<&'a [u8]>,
    /// All fields, for whoever looks at others.
    pub received: Received<'a>,
    /// What is wrong, if a field of these that may stand once stands there again: which of them would count?
    pub repeated: Option<&'static str>,
}

impl Head<'_> {
    /// True if a browser sent it on behalf of a page: there is an `Origin` or a `Sec-Fetch-Site`.
    pub const fn is_from_page(&self) -> bool {
        self.origin.is_some() || self.sec_fetch_site.is_some()
    }
}

/// A head that was read, and how its message goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<'a> {
    /// What the API looks at.
    pub head: Head<'a>,
    /// Bytes of the head, the empty line included.
    pub bytes: usize,
    /// How long the body is.
    pub length: Length,
    /// The connection stays open after the answer.
    pub keep_alive: bool,
    /// The caller waits to be told that its body is wanted.
    pub expects_continue: bool,
    /// HTTP/1.0.
    pub is_old: bool,
}

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many bytes.
    Known(u64),
    /// In chunks, until the last one.
    Chunked,
}

/// Why a message cannot be read. Its connection ends with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Not HTTP, or HTTP that could be understood in two ways.
    Malformed(&'static str),
    /// A version other than 1.0 and 1.1.
    Version,
    /// A request line without end.
    TargetTooLong,
    /// Too many bytes or fields in the head.
    HeadTooLarge,
    /// An expectation other than `100-continue`.
    Expectation,
    /// A body longer than this call may have.
    BodyTooLarge,
    /// The body did not come in time.
    TooSlow,
    /// There is no memory for its body at the moment.
    NoRoom,
    /// Answering it panicked: a bug of ours.
    Panicked,
}

/// Reads the head at the start of `bytes`; `None` if more bytes are needed.
pub fn parse(bytes: &[u8], max_head: usize, max_headers: usize) -> Result<Option<Parsed<'_>>, Fault> {
    const INLINE: usize = 32;
    let bytes = bytes.get(..=max_head).unwrap_or(bytes); // what follows may be the next hundred requests
    let mut few = [EMPTY_HEADER; INLINE];
    let few = few.get_mut(..max_headers.min(INLINE)).unwrap_or_default();
    match parse_into(few, bytes, max_head) {
        // More fields than room on the stack, though perhaps not more than allowed: rare, and worth an allocation.
        Err(Fault::HeadTooLarge) if max_headers > INLINE => {
            parse_into(&mut vec![EMPTY_HEADER; max_headers], bytes, max_head)
        }
        other => other,
    }
}

fn parse_into<'b>(
    fields: &mut [httparse::Header<'b>],
    bytes: &'b [u8],
    max_head: usize,
) -> Result<Option<Parsed<'b>>, Fault> {
    let mut request = httparse::Request::new(fields);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) if length <= max_head => length,
        Ok(Status::Partial) if bytes.len() <= max_head => return Ok(None),
        Ok(_) => return Err(too_large(bytes, max_head)),
        Err(Error::TooManyHeaders) => return Err(Fault::HeadTooLarge),
        Err(Error::Version) => return Err(Fault::Version),
        Err(Error::Token) => return Err(Fault::Malformed("the request line is not one")),
        Err(Error::NewLine | Error::HeaderName) => return Err(Fault::Malformed("a header field is not one")),
        Err(Error::HeaderValue) => return Err(Fault::Malformed("a header field has forbidden bytes in its value")),
        Err(Error::Status) => return Err(Fault::Malformed("the request line is not one")),
    };
    if has_bare_line_feed(bytes.get(..length).unwrap_or_default()) {
        return Err(Fault::Malformed("a line does not end in CR LF"));
    }
    let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    let is_old = request.version == Some(0);
    let mut reader = Reader { is_old, keep_alive: !is_old, ..Reader::default() };
    for field in request.headers.iter() {
        reader.field(field, bytes)?;
    }
    let length_of_body = reader.length()?;
    reader.host(target)?;
    let (path, query) = split_target(target).ok_or(Fault::Malformed("the target is not a path"))?;
    if path == "*" && method != "OPTIONS" {
        return Err(Fault::Malformed(ASTERISK));
    }
    let Reader { head, keep_alive, expects_continue, .. } = reader;
    let received = Received::Head(bytes.get(..length).unwrap_or_default());
    let head = Head { method, path, query, received, ..head };
    Ok(Some(Parsed { head, bytes: length, length: length_of_body, keep_alive, expects_continue, is_old }))
}

/// Gathers what matters from the fields.
#[derive(Default)]
struct Reader<'a> {
    head: Head<'a>,
    is_old: bool,
    keep_alive: bool,
    expects_continue: bool,
    hosts: usize,
    content_length: Option<u64>,
    chunked: bool,
    closes: bool,
}

impl<'a> Reader<'a> {
    fn field(&mut self, field: &httparse::Header<'a>, bytes: &[u8]) -> Result<(), Fault> {
        let (name, value) = (field.name, field.value);
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        // By length first: most fields are none of ours, and are then told from them by one comparison.
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

    /// A field that may stand once, and `otherwise`: whoever answers the call knows whether that matters.
    fn once(
        &mut self,
        place: for<'h> fn(&'h mut Head<'a>) -> &'h mut Option<&'a [u8]>,
        value: &'a [u8],
        otherwise: &'static str,
    ) {
        if place(&mut self.head).replace(value).is_some() {
            self.head.repeated = Some(otherwise);
        }
    }

    fn expect(&mut self, value: &[u8]) -> Result<(), Fault> {
        match value.eq_ignore_ascii_case(b"100-continue") {
            true => self.expects_continue = !self.is_old, // HTTP/1.0 knows no interim answers
            false => return Err(Fault::Expectation),
        }
        Ok(())
    }

    /// Once any of them asks to close, none can undo it.
    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            self.closes |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
        self.keep_alive &= !self.closes;
    }

    /// A number, once.
    fn content_length(&mut self, value: &[u8]) -> Result<(), Fault> {
        let number = is_length(value).then(|| str::from_utf8(value).ok()?.parse().ok()).flatten();
        match (number, self.content_length) {
            (Some(number), None) => self.content_length = Some(number),
            (Some(_), Some(_)) => return Err(Fault::Malformed("there is more than one Content-Length")),
            (None, _) => return Err(Fault::Malformed(LENGTH_BAD)),
        }
        Ok(())
    }

    /// One host, which an absolute target must not contradict.
    fn host(&mut self, target: &'a str) -> Result<(), Fault> {
        let parse = |sent| Authority::parse(sent).ok_or(Fault::Malformed(HOST_BAD));
        let field = self.head.host.map(parse).transpose()?;
        let Some((default_port, rest)) = absolute(target) else { return Ok(()) };
        let sent = rest.split(['/', '?']).next().unwrap_or_default().as_bytes();
        let authority = parse(sent)?;
        if field.is_some_and(|field| !field.is_same(authority, default_port)) {
            return Err(Fault::Malformed(HOSTS_DIFFER));
        }
        self.head.host.get_or_insert(sent);
        Ok(())
    }

    /// Exactly `chunked`, once, and without white space that a reader less careful might take for part of it.
    fn transfer_encoding(&mut self, value: &[u8], bytes: &[u8]) -> Result<(), Fault> {
        let end = (value.as_ptr() as usize + value.len()).wrapping_sub(bytes.as_ptr() as usize);
        let start = (value.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize);
        let tight = bytes.get(end) == Some(&b'\r')
            && bytes.get(..start).is_some_and(|before| {
                before.ends_with(b":")
                    || (before.ends_with(b" ") && !before.ends_with(b"  ") && !before.ends_with(b"\t "))
            });
        match value.eq_ignore_ascii_case(b"chunked") && tight && !self.chunked {
            true => self.chunked = true,
            false => return Err(Fault::Malformed("Transfer-Encoding is not exactly `chunked`")),
        }
        Ok(())
    }

    fn length(&self) -> Result<Length, Fault> {
        match (self.content_length, self.chunked) {
            _ if self.hosts > 1 || (self.hosts == 0 && !self.is_old) => Err(Fault::Malformed(HOSTS_MANY)),
            (Some(_), true) => Err(Fault::Malformed("Content-Length and Transfer-Encoding exclude each other")),
            (None, true) if self.is_old => Err(Fault::Malformed("HTTP/1.0 has no Transfer-Encoding")),
            (None, true) => Ok(Length::Chunked),
            (length, false) => Ok(Length::Known(length.unwrap_or(0))),
        }
    }
}

/// A head that does not end: the target's fault if not even the request line does.
fn too_large(bytes: &[u8], max_head: usize) -> Fault {
    match bytes.iter().take(max_head).any(|byte| *byte == b'\n') {
        true => Fault::HeadTooLarge,
        false => Fault::TargetTooLong,
    }
}

/// True if some line ends in LF alone, which `httparse` takes for an end and other readers take for part of the line.
fn has_bare_line_feed(head: &[u8]) -> bool {
    // To the end in any case: a loop without a way out is one that the compiler turns into a few wide instructions.
    let pairs = head.iter().zip(head.get(1..).unwrap_or_default());
    let inside = pairs.fold(false, |found, (before, byte)| found | ((*byte == b'\n') & (*before != b'\r')));
    inside || head.first() == Some(&b'\n')
}

/// Digits, without zeros in front, which some readers take for octal.
pub(super) fn is_length(value: &[u8]) -> bool {
    match value {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// The default port of an absolute target's scheme, and what follows the scheme.
fn absolute(target: &str) -> Option<(u16, &str)> {
    let of = |scheme, port| target.strip_prefix(scheme).map(|rest| (port, rest));
    of("http://", 80).or_else(|| of("https://", 443))
}

/// Path and query of a target; `None` if it has no path, as that of CONNECT.
pub(crate) fn split_target(target: &str) -> Option<(&str, Option<&str>)> {
    let target = match absolute(target) {
        Some((_, rest)) => rest.find(['/', '?']).and_then(|at| rest.get(at..)).unwrap_or("/"),
        None => Some(target).filter(|target| target.starts_with('/') || *target == "*")?,
    };
    Some(match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    })
}

#[cfg(test)]
mod tests;
