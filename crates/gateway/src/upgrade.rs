//! Upgrades: a request that asks for another protocol, such as WebSocket, and the tunnel behind a response of 101.
//!
//! Nothing of the other protocol is sent before the server has agreed, so a server that does not know it never reads bytes
//! that the gateway has not.

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::time::Instant;
use tollgate_service::HeaderFields;
use tollgate_web::{ResponseBody, Tunnel, WebResponse};

use crate::request_head::{remove_connection_fields, tokens};
use crate::response::{ExchangeGuards, forwarded, set_fields};
use crate::routes::CompiledRoute;
use crate::tunnel_copy::copy_both_ways;
use crate::upstream::UpgradedConnection;

/// True if the caller asks for another protocol. HTTP/2 in clear text is none: this listener speaks it at once.
pub(crate) fn is_upgrade(parts: &Parts) -> bool {
    let headers = &parts.headers;
    parts.version == Version::HTTP_11
        && tokens(headers, &header::CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade"))
        && headers.get(header::UPGRADE).is_some_and(|protocol| !protocol.as_bytes().eq_ignore_ascii_case(b"h2c"))
        && !headers.contains_key(header::CONTENT_LENGTH)
        && !headers.contains_key(header::TRANSFER_ENCODING)
}

/// Asks the server for the protocol.
pub(crate) fn ask_for(protocol: &HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, protocol.clone());
}

/// The response to an upgrade. After 101 both connections are one, until one end closes.
pub(crate) fn respond(
    mut answer: Response<Incoming>,
    connection: UpgradedConnection,
    route: &CompiledRoute,
    fields: &HeaderFields,
    mut guards: ExchangeGuards,
    end: Option<Instant>,
) -> WebResponse {
    let idle = route.upstream.spec.timeouts.idle;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        let received = answer.map(|body| connection.plain(body, idle, end));
        return forwarded(received, &route.spec, fields, guards);
    }
    let in_flight = connection.in_flight;
    let upgraded = hyper::upgrade::on(&mut answer);
    let (mut parts, _) = answer.into_parts();
    let protocol = parts.headers.get(header::UPGRADE).cloned();
    remove_connection_fields(&mut parts.headers);
    route.spec.response_headers.apply(&mut parts.headers);
    set_fields(&mut parts.headers, fields);
    guards.record.forwarded(parts.status.as_u16(), in_flight.server());
    guards.record.write_id(&mut parts.headers);
    if let Some(protocol) = protocol {
        ask_for(&protocol, &mut parts.headers);
    }
    let mut response = WebResponse::new(ResponseBody::empty());
    response.extensions_mut().insert(Tunnel::new(async move |caller| {
        let _held = (guards, in_flight);
        if let Ok(server) = upgraded.await {
            copy_both_ways(caller, TokioIo::new(server), idle).await;
        }
    }));
    *response.status_mut() = parts.status;
    *response.headers_mut() = parts.headers;
    response
}
