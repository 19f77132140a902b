//! Interim responses of a server (103 Early Hints and others), on their way to the caller.
//!
//! A server's `100 Continue` is not passed on: the gateway has answered the caller's expectation itself.

use std::sync::Arc;

use http::{HeaderName, Request, header};
use tollgate_web::InterimResponses;

use crate::request_head::remove_connection_fields;
use crate::routes::CompiledRoute;
use crate::upstream::SentRequestBody;

/// Fields that say how long a body is, which an interim response has not (RFC 9110, 8.6).
const FRAMING: [HeaderName; 2] = [header::CONTENT_LENGTH, header::TRAILER];

/// Has the interim responses to a request sent to its caller, where the caller can be sent any.
pub(crate) fn pass_on(request: &mut Request<SentRequestBody>, caller: InterimResponses, route: &Arc<CompiledRoute>) {
    if !caller.is_possible() {
        return;
    }
    let route = route.clone();
    hyper::ext::on_informational(request, move |interim| {
        let mut headers = interim.headers().clone();
        remove_connection_fields(&mut headers);
        for name in route.spec.response_headers.remove.iter().chain(&FRAMING) {
            headers.remove(name);
        }
        caller.send(interim.status(), &headers); // what the caller cannot be sent is dropped
    });
}
