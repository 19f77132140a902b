//! What the layer adds to a request of axum, beside the router alone and tower_governor.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::routing::get;
use http::Request;
use http_body_util::BodyExt;
use tokio::runtime::Runtime;
use tollgate_tower::{Engine, TollgateLayer, rules_from_yaml};
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_service::Service;

use crate::{AnyError, cpu, median};

const ROUNDS: usize = 15;
const CLIENTS: u32 = 10_000;

/// Never reached: what is measured is a request that passes.
const RULES: &str = "rules: [{ name: orders, match: { endpoint: 'GET /api/orders/{id}' }, key_by: ip, \
    limit: { requests: 1000000, window: 1s, burst: 1000000 } }]";

const CANDIDATES: [&str; 3] = ["axum", "axum tollgate-tower", "axum tower_governor"];

/// A router with one route, in the layer of a candidate.
fn candidate(name: &str) -> Result<Router, AnyError> {
    let bare = Router::new().route("/api/orders/{id}", get(async || "an order"));
    match name {
        "axum" => Ok(bare),
        "axum tollgate-tower" => {
            let rules = rules_from_yaml(RULES).map_err(|report| report.to_string())?;
            Ok(bare.layer(TollgateLayer::embedded(Engine::in_memory(rules))))
        }
        "axum tower_governor" => {
            let mut config = GovernorConfigBuilder::default();
            let config = config.per_nanosecond(1_000).burst_size(1_000_000).use_headers().finish();
            Ok(bare.layer(GovernorLayer::new(Arc::new(config.ok_or("the governor is not configured")?))))
        }
        _ => Err(format!("{name} is none of {CANDIDATES:?}").into()),
    }
}

/// Prints a row for each candidate.
pub fn compare(runtime: &Runtime, requests: u32) -> Result<(), AnyError> {
    let candidates = CANDIDATES.map(|name| candidate(name).map(|app| (name, app, Vec::new())));
    let mut candidates = candidates.into_iter().collect::<Result<Vec<_>, _>>()?;
    for _ in 0..ROUNDS {
        for (_, app, times) in &mut candidates {
            let start = cpu();
            runtime.block_on(ask(app.clone(), requests))?;
            times.push((cpu() - start) / f64::from(requests));
        }
    }
    for (name, _, times) in candidates {
        println!("{name}\t{:.0}", median(times));
    }
    Ok(())
}

/// The requests of one candidate, without making it.
pub fn measured(runtime: &Runtime, name: &str, requests: u32) -> Result<(), AnyError> {
    let app = candidate(name)?;
    runtime.block_on(ask(app.clone(), CLIENTS))?; // every client has its bucket
    run_measured(runtime, app, requests)
}

/// Counted by its name.
#[inline(never)]
fn run_measured(runtime: &Runtime, app: Router, requests: u32) -> Result<(), AnyError> {
    runtime.block_on(ask(app, requests))
}

async fn ask(mut app: Router, requests: u32) -> Result<(), AnyError> {
    for number in 0..requests {
        let mut request = Request::get("/api/orders/7").body(Body::empty())?;
        let client = (number % CLIENTS).to_be_bytes();
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([10, client[1], client[2], client[3]], 4711))));
        let response = app.call(request).await?;
        if response.status() != 200 {
            return Err(format!("answered {}", response.status()).into());
        }
        response.into_body().collect().await?;
    }
    Ok(())
}
