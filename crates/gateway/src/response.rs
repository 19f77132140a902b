//! The response on its way back: the server's, without the fields of its connection, and with what the decision tells.
//! What the request holds is given back when the body ends, however it ends.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Response, header, response};
use hyper::body::{Body, Frame, SizeHint};
use tollgate_service::{HeaderFields, HeldRequest};
use tollgate_web::{ResponseBody, StreamError, WebResponse, set_fields};

use crate::admitted_charge::AdmittedCharge;
use crate::cost::{CostSettlement, TokenStream};
use crate::request_head::remove_connection_fields;
use crate::request_record::RequestRecord;
use crate::spec::RouteSpec;
use crate::upstream::{ProtectedPermit, ReceivedResponse};

/// What a forwarded request holds until its response ends.
pub(crate) struct ExchangeGuards {
    pub(crate) record: RequestRecord,
    /// Its place among those that the upstream takes at once.
    pub(crate) _permit: ProtectedPermit,
    /// Its slots, if nothing is settled.
    pub(crate) _held: Option<HeldRequest>,
    /// Its slots, and the amounts that are settled when it ends.
    pub(crate) settlement: Option<CostSettlement>,
}

impl ExchangeGuards {
    pub(crate) fn new(record: RequestRecord, permit: ProtectedPermit, charge: AdmittedCharge) -> ExchangeGuards {
        let AdmittedCharge { held, settlement, .. } = charge;
        ExchangeGuards { record, _permit: permit, _held: held, settlement }
    }
}

/// The response to the caller.
pub(crate) fn forwarded(
    received: Response<ReceivedResponse>,
    route: &RouteSpec,
    fields: &HeaderFields,
    mut guards: ExchangeGuards,
) -> WebResponse {
    let (mut parts, body) = received.into_parts();
    guards.record.forwarded(parts.status.as_u16(), body.server());
    let content = ForwardedContent::new(body, &mut guards, &parts);
    if let ForwardedContent::Tokens(tokens) = &content
        && tokens.changes_length()
    {
        parts.headers.remove(header::CONTENT_LENGTH);
    }
    remove_connection_fields(&mut parts.headers);
    route.response_headers.apply(&mut parts.headers);
    set_fields(&mut parts.headers, fields);
    guards.record.write_id(&mut parts.headers);
    let mut response = WebResponse::new(ResponseBody::stream(ForwardedBody { content, guards: Some(guards) }));
    *response.status_mut() = parts.status;
    *response.headers_mut() = parts.headers;
    response
}

/// The body of a forwarded response.
struct ForwardedBody {
    content: ForwardedContent,
    guards: Option<ExchangeGuards>,
}

#[expect(clippy::large_enum_variant, reason = "nearly all are plain: a box would be an allocation for each response")]
enum ForwardedContent {
    Plain(ReceivedResponse),
    /// Of a language model.
    Tokens(Box<TokenStream<ReceivedResponse>>),
    Ended,
}

impl ForwardedContent {
    fn new(body: ReceivedResponse, guards: &mut ExchangeGuards, parts: &response::Parts) -> ForwardedContent {
        let Some(mut settlement) = guards.settlement.take() else { return ForwardedContent::Plain(body) };
        settlement.head(&parts.headers);
        match settlement.metered_call(parts.status.as_u16(), &parts.headers) {
            Some(call) => ForwardedContent::Tokens(Box::new(TokenStream::new(body, call, settlement))),
            None => {
                guards.settlement = Some(settlement);
                ForwardedContent::Plain(body)
            }
        }
    }
}

impl ForwardedBody {
    /// What was held is given back, and amounts are settled.
    fn end(&mut self) -> Option<ExchangeGuards> {
        self.content = ForwardedContent::Ended;
        self.guards.take()
    }
}

impl Body for ForwardedBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let ForwardedBody { content, guards } = &mut *self;
        let polled = match content {
            ForwardedContent::Plain(body) => Pin::new(body).poll_frame(cx),
            ForwardedContent::Tokens(tokens) => tokens.poll_frame(cx),
            ForwardedContent::Ended => return Poll::Ready(None),
        };
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(guards), Some(data)) = (guards, frame.data_ref()) {
                    guards.record.sent(data.len());
                    if let Some(settlement) = &mut guards.settlement {
                        settlement.chunk(data);
                    }
                }
            }
            Poll::Ready(Some(Err(error))) => {
                if let Some(mut guards) = self.end() {
                    guards.record.broke(error);
                }
            }
            Poll::Ready(None) => drop(self.end()),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            ForwardedContent::Plain(body) => body.is_end_stream(),
            ForwardedContent::Tokens(_) => false,
            ForwardedContent::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            ForwardedContent::Plain(body) => body.size_hint(),
            ForwardedContent::Tokens(_) => SizeHint::new(),
            ForwardedContent::Ended => SizeHint::with_exact(0),
        }
    }
}
