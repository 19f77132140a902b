//! Runs a handler of short bodies as an app: collects the body with the handler's cap, and sends the reply whole.

use std::sync::Arc;

use http::{HeaderValue, StatusCode, header};
use tollgate_service::Reply;

use crate::app::{WebApp, WebRequest, WebResponse};
use crate::handler::{Handler, handle_or_fail};
use crate::head::HttpError;
use crate::reply_fields::append_fields;
use crate::response_body::ResponseBody;

/// A [`Handler`] as a [`WebApp`].
#[derive(Debug)]
pub struct Buffered<H>(Arc<H>);

impl<H: Handler> Buffered<H> {
    /// This handler.
    pub fn new(handler: impl Into<Arc<H>>) -> Buffered<H> {
        Buffered(handler.into())
    }
}

impl<H: Handler> WebApp for Buffered<H> {
    async fn respond(&self, request: WebRequest) -> WebResponse {
        let handler = &*self.0;
        let mut reply = Reply::default();
        reply.clear();
        let head = request.head();
        let prepared = match head.repeated.filter(|_| !handler.may_repeat(&head)) {
            Some(repeated) => {
                handler.reject(HttpError::Malformed(repeated), &mut reply);
                None
            }
            None => handler.prepare(&request.peer, &head, &mut reply),
        };
        if let Some((prepared, max_body)) = &prepared {
            match request.body.collect(*max_body).await {
                Ok(body) => handle_or_fail(handler, prepared, &body, &mut reply).await,
                Err(error) => handler.reject(error, &mut reply),
            }
        }
        handler.completed(prepared.as_ref().map(|(prepared, _)| prepared), reply.status);
        response_of(reply)
    }

    fn reject(&self, error: HttpError) -> WebResponse {
        let mut reply = Reply::default();
        reply.clear();
        self.0.reject(error, &mut reply);
        self.0.completed(None, reply.status);
        response_of(reply)
    }
}

/// A reply as a response.
pub fn response_of(reply: Reply) -> WebResponse {
    let mut response = WebResponse::new(ResponseBody::full(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let fields = response.headers_mut();
    append_fields(fields, &reply.fields);
    if reply.close {
        fields.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
