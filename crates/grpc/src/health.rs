//! `grpc.health.v1`. Not serving until a shared store was reachable once, and not serving once the drain is announced,
//! some time before the listener closes. A store that fails later does not change the status: the fallback policy then
//! decides, and a load balancer that removed all nodes would turn a short store failure into an outage.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tollgate_proto::health::health_check_response::ServingStatus;
use tollgate_proto::health::health_server::Health;
use tollgate_proto::health::{HealthCheckRequest, HealthCheckResponse};
use tonic::{Request, Response, Status};

use tollgate_net::Drain;
use tollgate_service::Service;

/// Known service names. All share one status.
const NAMES: [&str; 4] = ["", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService", "tollgate.v1.Tollgate"];

/// How often a watch checks a store that has not been reachable yet.
const STORE_POLL_EVERY: Duration = Duration::from_millis(500);

/// Implements the health service. Clones share state.
#[derive(Clone)]
pub(super) struct HealthService {
    service: Arc<Service>,
    drain: Drain,
}

impl HealthService {
    pub(super) fn new(service: Arc<Service>, drain: Drain) -> HealthService {
        HealthService { service, drain }
    }

    async fn status(&self) -> ServingStatus {
        match !self.drain.is_announced() && self.service.store_was_reachable().await {
            true => ServingStatus::Serving,
            false => ServingStatus::NotServing,
        }
    }

    /// Sends the status, and again after every change, until the client cancels or the connection closes.
    async fn watch_status(
        self,
        is_known: bool,
        updates: mpsc::Sender<Result<HealthCheckResponse, Status>>,
        closing: CancellationToken,
    ) {
        let mut last = None;
        loop {
            let status = if is_known { self.status().await } else { ServingStatus::ServiceUnknown };
            if last.replace(status) != Some(status) && updates.send(Ok(response(status))).await.is_err() {
                return;
            }
            let drain = &self.drain;
            let is_store_pending = status == ServingStatus::NotServing && !drain.is_announced();
            tokio::select! {
                () = updates.closed() => return,
                () = closing.cancelled() => break,
                () = drain.announced(), if !drain.is_announced() => {}
                () = sleep(STORE_POLL_EVERY), if is_store_pending => {}
            }
        }
        // Fails if the client has gone.
        let _ = updates.send(Err(Status::unavailable("this server is going away: ask again"))).await;
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Health for HealthService {
    type WatchStream = HealthUpdates;

    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        match NAMES.contains(&request.get_ref().service.as_str()) {
            true => Ok(Response::new(response(self.status().await))),
            false => Err(Status::not_found("there is no such service here")),
        }
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthUpdates>, Status> {
        let is_known = NAMES.contains(&request.get_ref().service.as_str());
        let closing = request.extensions().get::<CancellationToken>().cloned().unwrap_or_default();
        let (updates, receiver) = mpsc::channel(1);
        tokio::spawn(self.clone().watch_status(is_known, updates, closing));
        Ok(Response::new(HealthUpdates(receiver)))
    }
}

/// Response stream of `Watch`.
pub(super) struct HealthUpdates(mpsc::Receiver<Result<HealthCheckResponse, Status>>);

impl Stream for HealthUpdates {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}
