//! What the layer adds to a request of axum: CPU time in one process, without sockets, beside the router alone and
//! tower_governor. Candidates take turns; figures are medians over rounds. Run by `script/bench sdk`.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::routing::get;
use http::Request;
use http_body_util::BodyExt;
use rustix::time::{ClockId, clock_gettime};
use tollgate_tower::{Engine, TollgateLayer, rules_from_yaml};
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;
use tower_service::Service;

const ROUNDS: usize = 15;
const CLIENTS: u32 = 10_000;

/// Never reached: what is measured is a request that passes.
const RULES: &str = "rules: [{ name: orders, match: { endpoint: 'GET /api/orders/{id}' }, key_by: ip, \
    limit: { requests: 1000000, window: 1s, burst: 1000000 } }]";

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let requests = std::env::args().nth(1).map_or(Ok(100_000), |count| count.parse::<u32>())?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let governor = GovernorConfigBuilder::default().per_nanosecond(1_000).burst_size(1_000_000).use_headers().finish();
    let governor = Arc::new(governor.ok_or("the governor is not configured")?);
    let rules = rules_from_yaml(RULES).map_err(|report| report.to_string())?;
    let bare = || Router::new().route("/api/orders/{id}", get(async || "an order"));
    let candidates = [
        ("axum", bare()),
        ("tollgate-tower, embedded", bare().layer(TollgateLayer::embedded(Engine::in_memory(rules)))),
        ("tower_governor", bare().layer(GovernorLayer::new(governor))),
    ];
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); candidates.len()];
    for _ in 0..ROUNDS {
        for ((_, app), times) in candidates.iter().zip(&mut times) {
            times.push(runtime.block_on(round(app.clone(), requests))?);
        }
    }
    println!("| | CPU per request | more than axum |\n|---|---:|---:|");
    let mut base = None;
    for ((name, _), times) in candidates.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let median = times.get(ROUNDS / 2).copied().unwrap_or_default();
        println!("| {name} | {median:.0} ns | {:.0} ns |", median - *base.get_or_insert(median));
    }
    Ok(())
}

/// Nanoseconds of CPU per request.
async fn round(mut app: Router, requests: u32) -> Result<f64, AnyError> {
    let start = cpu();
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
    Ok((cpu() - start) / f64::from(requests))
}

fn cpu() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}
