//! What a protocol has to know: how a request is framed, and where a reply ends.
//!
//! An enum, because the protocols are known; everything else in this crate is the same for all of them.

use crate::error::Error;
use crate::http;
use crate::request::Request;
use crate::target::Target;
use crate::template::Template;

/// Longest reply that is waited for: whoever sends more is not answering a check.
pub const REPLY_MAX: usize = 16 << 20;

/// How requests and replies lie on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 with keep-alive.
    #[default]
    Http,
}

/// One whole reply at the front of what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its bytes.
    pub length: usize,
    /// What it says.
    pub verdict: Verdict,
    /// The server closes the connection after it.
    pub is_last: bool,
}

/// What a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request may pass.
    Allowed,
    /// It may not.
    Denied,
    /// No decision, but this status.
    Failed(u16),
}

/// Bytes that are no reply, whatever follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl Protocol {
    /// The request as bytes, `copies` times.
    pub fn template(self, request: &Request, target: &Target, copies: usize) -> Result<Template, Error> {
        request.check()?;
        match self {
            Protocol::Http => Ok(Template::new(&http::frame(request, target.host()), copies)),
        }
    }

    /// The reply at the front of `bytes`; `None` if its end has not come yet.
    #[inline]
    pub fn find(self, bytes: &[u8]) -> Result<Option<Reply>, Malformed> {
        let found = match self {
            Protocol::Http => http::find(bytes)?,
        };
        match found {
            None if bytes.len() > REPLY_MAX => Err(Malformed("the reply is too long")),
            found => Ok(found),
        }
    }
}
