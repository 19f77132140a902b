//! Applications, and requests to them without a socket.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::routing::{get, post};
use http::{Request, Response};
use http_body_util::BodyExt;
use tollgate_tower::{Engine, ManualClock, Time, TollgateLayer, rules_from_yaml};
use tower_service::Service;

pub const START: Time = Time::from_secs(1_795_026_651);

pub fn engine(rules: &str) -> Engine<tollgate_tower::engine::Memory> {
    Engine::on_clock(rules_from_yaml(rules).unwrap(), ManualClock::at(START))
}

pub fn layer(rules: &str) -> TollgateLayer {
    TollgateLayer::embedded(engine(rules))
}

/// Routes at the top, and some that are nested.
pub fn app(limits: TollgateLayer) -> Router {
    let orders = Router::new().route("/orders/{id}", get(async || "order")).route("/orders", post(async || "created"));
    Router::new().nest("/api", orders).route("/health", get(async || "ok")).layer(limits)
}

/// A request from an address, with header fields.
pub fn request(method: &str, target: &str, from: &str, fields: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert(ConnectInfo(SocketAddr::new(from.parse().unwrap(), 4711)));
    request
}

pub async fn send(app: &Router, request: Request<Body>) -> Response<Body> {
    app.clone().call(request).await.unwrap()
}

/// The status of a GET.
pub async fn status(app: &Router, target: &str, from: &str, fields: &[(&str, &str)]) -> u16 {
    send(app, request("GET", target, from, fields)).await.status().as_u16()
}

pub async fn text(response: Response<Body>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}
