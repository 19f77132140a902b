//! Writes a reply as HTTP/1.

use tollgate_core::Time;

use super::{date, status};
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
pub(super) fn reply(reply: &Reply, connection: ConnectionHeader, head_only: bool, now: Time, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    match reply.status {
        200 => put(out, b"HTTP/1.1 200 OK\r\nDate: "),
        code => {
            put(out, b"HTTP/1.1 ");
            put(out, digits.format(code).as_bytes());
            put(out, b" ");
            put(out, status::reason(code).as_bytes());
            put(out, b"\r\nDate: ");
        }
    }
    put(out, &date::at(now));
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
