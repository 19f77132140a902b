//! What a protocol has to know: how a request is framed, and what its reply says.
//!
//! Everything else in this crate is the same for all of them.

use crate::error::LoadError;
use crate::replies::{InOrderReplies, Replies};
use crate::request::LoadRequest;
use crate::target::{Target, TargetProtocol};
use crate::template::Template;
use crate::{grpc, http, resp};

/// A request as its protocol sends it.
#[derive(Debug)]
pub struct FramedRequest {
    /// Sent again and again.
    pub template: Template,
    /// Sent first on every connection.
    pub opening: Vec<u8>,
    /// How a connection's replies are read.
    pub replies: Replies,
}

/// Frames a request, of which up to `copies` go out at once.
pub fn frame(request: &LoadRequest, target: &Target, copies: usize) -> Result<FramedRequest, LoadError> {
    request.check()?;
    let in_order = |template, queue| FramedRequest { template, opening: Vec::new(), replies: Replies::InOrder(queue) };
    match target.protocol() {
        TargetProtocol::Http => {
            let template = Template::new(&http::frame(request, target.host()), copies);
            Ok(in_order(template, InOrderReplies::new(http::find)))
        }
        TargetProtocol::Resp => {
            let (text, find) = resp::frame(request)?;
            Ok(in_order(Template::new(&[text], copies), InOrderReplies::new(find)))
        }
        TargetProtocol::Grpc => {
            let grpc::FramedCalls { template, opening, streams } = grpc::frame(request, target.host(), copies)?;
            Ok(FramedRequest { template, opening, replies: Replies::ByStream(streams) })
        }
    }
}
