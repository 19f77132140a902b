//! Active health checks: a GET at intervals. Some failures in a row leave a server out, some successes take it back.

use std::sync::Arc;

use http::{Method, Request, Uri, header};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::{SentRequestBody, UpstreamServer};
use crate::spec::HealthSpec;

/// Checks a server until the task is aborted.
pub(crate) async fn check_health(server: Arc<UpstreamServer>, spec: HealthSpec) {
    // Servers of one upstream are not all asked in the same moment.
    let stagger = tollgate_service::random::fast() % 1000;
    sleep(spec.every.mul_f64(stagger as f64 / 1000.0)).await;
    let (mut successes, mut failures) = (0, 0);
    loop {
        match timeout(spec.timeout, is_well(&server, &spec.path)).await.unwrap_or(false) {
            true => (successes, failures) = (successes + 1, 0),
            false => (successes, failures) = (0, failures + 1),
        }
        if server.is_healthy() && failures >= spec.unhealthy_after {
            server.set_healthy(false);
            warn!(server = %server.url, failures, "a server fails its health checks and is not used");
        } else if !server.is_healthy() && successes >= spec.healthy_after {
            server.set_healthy(true);
            info!(server = %server.url, "a server passes its health checks and is used again");
        }
        sleep(spec.every).await;
    }
}

/// Whether the server answers 2xx or 3xx. The connection is not kept: opening one is part of the check.
async fn is_well(server: &UpstreamServer, path: &str) -> bool {
    let mut request = Request::new(SentRequestBody::empty());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = path.parse().unwrap_or(Uri::from_static("/"));
    request.headers_mut().insert(header::HOST, server.authority.clone());
    let Ok(checkout) = server.pool().open_unshared().await else { return false };
    match checkout.send(request, &server.url).await {
        Ok((response, _)) => response.status().is_success() || response.status().is_redirection(),
        Err(_) => false,
    }
}
