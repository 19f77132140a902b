//! The application of the suite, on axum.

use std::borrow::Cow;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::io::{AsyncReadExt, stdin};
use tokio::net::TcpListener;
use tollgate_tower::{CallerAttributes, TollgateLayer, UsedAmounts};

use crate::{AnyError, settings};

/// Serves until standard input ends.
pub async fn serve() -> Result<(), AnyError> {
    let limits = TollgateLayer::remote(settings::client()?);
    let limits = settings::configured(limits)?.identify(identify).skip(|request| request.uri.path() == "/health");
    let metered =
        limits.clone().costs(|_| vec![(Cow::Borrowed("tokens"), 100)]).settle(|_| vec![(Cow::Borrowed("tokens"), 0)]); // a handler that fails used none
    let completions = Router::new().route("/{tokens}", post(complete)).layer(metered);
    let app = Router::new()
        .route("/api/orders/{id}", get(order))
        .route("/api/orders", post(async || (StatusCode::CREATED, "{\"created\":true}")))
        .route("/api/fail", get(async || StatusCode::INTERNAL_SERVER_ERROR))
        .route("/health", get(async || "ok"))
        .fallback(async || StatusCode::NOT_FOUND)
        .layer(limits)
        .nest("/api/complete", completions);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("ready http://{}", listener.local_addr()?);
    let served = axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>());
    tokio::select! {
        served = served => Ok(served?),
        ended = until_input_ends() => ended,
    }
}

async fn until_input_ends() -> Result<(), AnyError> {
    let mut ignored = [0; 64];
    while stdin().read(&mut ignored).await? > 0 {}
    Ok(())
}

/// The key, if there is exactly one; the address counts in any case.
fn identify(request: &Parts) -> CallerAttributes<'_> {
    let mut keys = request.headers.get_all("x-api-key").iter();
    match (keys.next().and_then(|key| key.to_str().ok()), keys.next()) {
        (Some(key), None) if !key.is_empty() && !key.contains(',') => CallerAttributes::new().api_key(key),
        _ => CallerAttributes::new(),
    }
}

async fn order(Path(id): Path<String>) -> String {
    format!("{{\"order\":\"{id}\"}}")
}

async fn complete(Path(tokens): Path<String>) -> Response {
    let Ok(used) = tokens.parse::<u64>() else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let mut response = ([("x-tokens", tokens)], format!("{{\"tokens\":{used}}}")).into_response();
    response.extensions_mut().insert(UsedAmounts::of("tokens", used));
    response
}
