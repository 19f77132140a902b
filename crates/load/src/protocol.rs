//! What a protocol has to know: how a request is framed, and what its reply says.
//!
//! Everything else in this crate is the same for all of them.

use crate::error::Error;
use crate::replies::{Queue, Replies};
use crate::request::Request;
use crate::target::{Protocol, Target};
use crate::template::Template;
use crate::{grpc, http, resp};

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
        Protocol::Grpc => {
            let grpc::Framed { template, opening, streams } = grpc::frame(request, target.host(), copies)?;
            Ok(Framed { template, opening, replies: Replies::ByStream(streams) })
        }
    }
}
