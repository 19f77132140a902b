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
use tollgate_web::{ResponseBody, Tunnel, WebResponse, set_fields};

use crate::request_head::{remove_connection_fields, tokens};
use crate::response::{ExchangeGuards, forwarded};
use crate::routes::CompiledRoute;
use crate::tunnel_copy::copy_both_ways;
use crate::upstream::UpgradedConnection;

/// The protocol that the caller asks for instead of HTTP/1.1, if it asks for one alone. Behind a tunnel of HTTP requests no
/// rule would see them: another version of HTTP is none, and of a list a server might choose it.
pub(crate) fn asked_protocol(parts: &Parts) -> Option<HeaderValue> {
    let headers = &parts.headers;
    let is_asked = parts.version == Version::HTTP_11
        && tokens(headers, &header::CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade"))
        && !headers.contains_key(header::CONTENT_LENGTH)
        && !headers.contains_key(header::TRANSFER_ENCODING);
    let mut values = headers.get_all(header::UPGRADE).iter();
    let (protocol, None) = (values.next().filter(|_| is_asked)?, values.next()) else { return None };
    let name = protocol.to_str().ok()?.to_ascii_lowercase();
    let is_http = ["h2", "h3", "http", "tls"].iter().any(|prefix| name.starts_with(prefix));
    let is_one = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/+".contains(&byte));
    (is_one && !is_http).then(|| protocol.clone())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(fields: &[(&'static str, &'static str)]) -> Option<HeaderValue> {
        let mut request = http::Request::get("/").header("connection", "keep-alive, Upgrade");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        asked_protocol(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn one_protocol_that_is_not_http_is_asked_for() {
        for protocol in ["websocket", "WebSocket", "echo", "SPDY/3.1"] {
            assert_eq!(asked(&[("upgrade", protocol)]).as_ref().map(HeaderValue::as_bytes), Some(protocol.as_bytes()));
        }
        for refused in ["h2c", "H2C", "h2c, websocket", "websocket, h2c", "h2c;x", "HTTP/2.0", "TLS/1.0", "h2"] {
            assert_eq!(asked(&[("upgrade", refused)]), None, "{refused}");
        }
        assert_eq!(asked(&[("upgrade", "websocket"), ("upgrade", "h2c")]), None, "a list in two fields");
        assert_eq!(asked(&[("upgrade", "websocket"), ("content-length", "3")]), None, "with a body");
        assert_eq!(asked(&[]), None);
    }
}
