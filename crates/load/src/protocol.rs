//! Frames a request for the protocol of its target. The rest of the crate does not depend on the protocol.

use crate::error::LoadError;
use crate::replies::{InOrderReplies, Replies};
use crate::request::LoadRequest;
use crate::target::{Target, TargetProtocol};
use crate::template::MessageTemplate;
use crate::{grpc, http, resp};

/// A request framed for its protocol.
#[derive(Debug)]
pub struct FramedRequest {
    /// The bytes of a request, patched and sent repeatedly.
    pub template: MessageTemplate,
    /// Bytes sent first on every connection.
    pub opening: Vec<u8>,
    /// The initial state of a connection's replies.
    pub replies: Replies,
}

/// Frames a request, of which up to `copies` are sent at once.
pub fn frame(request: &LoadRequest, target: &Target, copies: usize) -> Result<FramedRequest, LoadError> {
    request.check()?;
    let in_order = |template, queue| FramedRequest { template, opening: Vec::new(), replies: Replies::InOrder(queue) };
    match target.protocol() {
        TargetProtocol::Http => {
            let template = MessageTemplate::new(&http::frame(request, target.host()), copies);
            Ok(in_order(template, InOrderReplies::new(http::find)))
        }
        TargetProtocol::Resp => {
            let (text, find) = resp::frame(request)?;
            Ok(in_order(MessageTemplate::new(&[text], copies), InOrderReplies::new(find)))
        }
        TargetProtocol::Grpc => {
            let grpc::FramedCalls { template, opening, streams } = grpc::frame(request, target.host(), copies)?;
            Ok(FramedRequest { template, opening, replies: Replies::ByStream(streams) })
        }
    }
}
