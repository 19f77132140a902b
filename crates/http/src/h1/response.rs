//! Writes a reply as HTTP/1: status line, `Date`, the reply's fields, framing, body.

use std::cell::Cell;

use tollgate_core::Time;
use tollgate_rules::datetime;
use tollgate_service::Reply;

/// The `Connection` field of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionHeader {
    /// None: the connection stays open by default.
    Omitted,
    /// `keep-alive`: HTTP/1.0 closes by default.
    KeepAlive,
    /// `close`.
    Close,
}

/// Appends the reply to `out`; `head_only` omits the body, for HEAD.
pub(super) fn write(reply: &Reply, connection: ConnectionHeader, head_only: bool, now: Time, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    match reply.status {
        200 => put(out, b"HTTP/1.1 200 OK\r\nDate: "),
        code => {
            put(out, b"HTTP/1.1 ");
            put(out, digits.format(code).as_bytes());
            put(out, b" ");
            put(out, reason(code).as_bytes());
            put(out, b"\r\nDate: ");
        }
    }
    put(out, &date_at(now));
    for (name, value) in reply.fields.iter() {
        put(out, b"\r\n");
        put(out, name.as_bytes());
        put(out, b": ");
        put(out, value);
    }
    // These statuses have no body, so no length either (RFC 9110, 8.6).
    if !matches!(reply.status, 204 | 304) {
        put(out, b"\r\nContent-Length: ");
        put(out, digits.format(reply.body.len()).as_bytes());
    }
    put(
        out,
        match connection {
            ConnectionHeader::Omitted => b"\r\n\r\n",
            ConnectionHeader::KeepAlive => b"\r\nConnection: keep-alive\r\n\r\n",
            ConnectionHeader::Close => b"\r\nConnection: close\r\n\r\n",
        },
    );
    if !head_only {
        put(out, &reply.body);
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
}

/// The reason phrase, which HTTP/1 requires.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        507 => "Insufficient Storage",
        505 => "HTTP Version Not Supported",
        _ => "Unknown",
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
type HttpDate = [u8; 29];

/// The value of `Date` at `now`, formatted once per second and thread.
fn date_at(now: Time) -> HttpDate {
    thread_local!(static LAST: Cell<(u64, HttpDate)> = const { Cell::new((u64::MAX, [b' '; 29])) });
    let second = now.nanos() / 1_000_000_000;
    LAST.with(|last| {
        let (of, text) = last.get();
        if of == second {
            return text;
        }
        let text = format_date(second);
        last.set((second, text));
        text
    })
}

fn format_date(second: u64) -> HttpDate {
    const DAYS: [&[u8]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"]; // the epoch was a Thursday
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let (days, rest) = (second / 86_400, second % 86_400);
    let (year, month, day) = datetime::date(days);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    let mut put = |at: usize, with: &[u8]| {
        if let Some(place) = text.get_mut(at..at + with.len()) {
            place.copy_from_slice(with);
        }
    };
    let two = |n: u64| [b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8];
    put(0, DAYS.get((days % 7) as usize).copied().unwrap_or_default());
    put(5, &two(day));
    put(8, MONTHS.get(month as usize - 1).copied().unwrap_or_default());
    put(12, &[two(year / 100), two(year)].concat());
    put(17, &two(rest / 3600));
    put(20, &two(rest / 60 % 60));
    put(23, &two(rest % 60));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_http_dates() {
        let cases = [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (4_102_444_800, "Fri, 01 Jan 2100 00:00:00 GMT"),
        ];
        for (second, text) in cases {
            assert_eq!(str::from_utf8(&date_at(Time::from_secs(second))).unwrap(), text);
        }
    }
}
