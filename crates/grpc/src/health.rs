//! `grpc.health.v1`: may calls be sent here? No while a shared store has not been seen since the start, and no from the
//! signal to stop on, some time before the listener closes. A store that goes away later is no reason: decisions are then made by
//! policy, and a balancer that took all nodes out would turn a hiccup of the store into an outage.

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

/// What may be asked about; all of it serves, or none.
const NAMES: [&str; 4] = ["", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService", "tollgate.v1.Tollgate"];

/// How often somebody who watches has a store looked at that was not seen yet.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Tells whether calls may be sent here. Clones are the same.
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

    /// Tells how it is, and again whenever that changes, until nobody listens or the connection is about to end.
    async fn tell(
        self,
        known: bool,
        told: mpsc::Sender<Result<HealthCheckResponse, Status>>,
        leave: CancellationToken,
    ) {
        let mut last = None;
        loop {
            let status = if known { self.status().await } else { ServingStatus::ServiceUnknown };
            if last.replace(status) != Some(status) && told.send(Ok(response(status))).await.is_err() {
                return;
            }
            let drain = &self.drain;
            let is_new = status == ServingStatus::NotServing && !drain.is_announced();
            tokio::select! {
                () = told.closed() => return,
                () = leave.cancelled() => break,
                () = drain.announced(), if !drain.is_announced() => {}
                () = sleep(LOOK_EVERY), if is_new => {}
            }
        }
        let _ = told.send(Err(Status::unavailable("this server is going away: ask again"))).await; // or nobody listens
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
        let known = NAMES.contains(&request.get_ref().service.as_str());
        let leave = request.extensions().get::<CancellationToken>().cloned().unwrap_or_default();
        let (told, heard) = mpsc::channel(1);
        tokio::spawn(self.clone().tell(known, told, leave));
        Ok(Response::new(HealthUpdates(heard)))
    }
}

/// What somebody who watches is told.
pub(super) struct HealthUpdates(mpsc::Receiver<Result<HealthCheckResponse, Status>>);

impl Stream for HealthUpdates {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}
