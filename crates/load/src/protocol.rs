//! What a protocol has to know: how a request is framed, and what its reply says.
//!
//! Everything else in this crate is the same for all of them.

use crate::error::Error;
use crate::replies::{Queue, Replies};
use crate::request::Request;
use crate::target::{Protocol, Target};
use crate::template::Template;
use crate::{grpc, http, resp};

/// Longest reply that is waited for: whoever sends more is not answering a check.
pub const REPLY_MAX: usize = 16 << 20;

/// A request as its protocol sends it.
#[derive(Debug)]
pub struct Framed {
    /// Sent again and again.
    pub template: Template,
    /// Sent first on every connection.
    pub opening: Vec<u8>,
    /// How a connection's replies are read.
    pub replies: Replies,
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
    /// No decision, but this status; 0 where the protocol has no numbers for it.
    Failed(u16),
}

/// Bytes that are no reply, whatever follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// Frames a request, of which up to `copies` go out at once.
pub fn frame(request: &Request, target: &Target, copies: usize) -> Result<Framed, Error> {
    request.check()?;
    let in_order = |template, queue| Framed { template, opening: Vec::new(), replies: Replies::InOrder(queue) };
    match target.protocol() {
        Protocol::Http => {
            let template = Template::new(&http::frame(request, target.host()), copies);
            Ok(in_order(template, Queue::new(http::find)))
        }
        Protocol::Resp => {
            let (text, find) = resp::frame(request)?;
            Ok(in_order(Template::new(&[text], copies), Queue::new(find)))
        }
        Protocol::Grpc => grpc::frame(request, target.host(), copies),
    }
}
