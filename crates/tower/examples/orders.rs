//! An application with a limit, and nothing else.

use std::io::Write as _;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use tollgate_tower::{CallerAttributes, Engine, TollgateLayer, rules_from_yaml};

const RULES: &str = "
rules:
  - name: orders
    match: { endpoint: 'GET /api/orders/{id}' }
    key_by: 'api_key|ip'
    limit: { requests: 60, window: 1m, burst: 3 }
  - name: per-address
    key_by: ip
    limit: { requests: 600, window: 1m, burst: 100 }
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::in_memory(rules_from_yaml(RULES).map_err(|report| report.to_string())?);
    let limits = TollgateLayer::embedded(engine)
        // Only what was verified: here, a list of keys; elsewhere, what the authentication before this layer has found.
        .identify(|request| match request.headers.get("x-api-key").and_then(|key| key.to_str().ok()) {
            Some(key) if key == "k-alice" => CallerAttributes::new().api_key(key),
            _ => CallerAttributes::new(), // the address
        })
        .skip(|request| request.uri.path() == "/health");

    let app = Router::new()
        .route("/api/orders/{id}", get(async |Path(id): Path<u64>| format!("order {id}\n")))
        .route("/health", get(async || "ok\n"))
        .layer(limits);

    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    writeln!(std::io::stderr(), "listening on http://{}", listener.local_addr()?)?;
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
