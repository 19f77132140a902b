//! Services and settings shared by all connections of a listener.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use tollgate_proto::health::health_server::HealthServer;
use tollgate_proto::v1::tollgate_server::TollgateServer;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_reflection::server::Builder;

use super::health::HealthService;
use super::incoming::Incoming;
use super::method::GrpcMethod;
use super::metrics::GrpcMetrics;
use super::tollgate_v1::TollgateService;
use tollgate_config::GrpcSettings;
use tollgate_net::{Drain, NetLimits};
use tollgate_service::Service;
use tollgate_service::data_tokens::TokenScope;

/// Dependencies and settings of the gRPC transport.
pub struct GrpcConfig {
    /// Decides the requests.
    pub service: Arc<Service>,
    /// Caps on messages.
    pub limits: NetLimits,
    /// Health checks fail once the drain is announced.
    pub drain: Drain,
    /// Counts calls.
    pub metrics: Arc<GrpcMetrics>,
    /// Reflection and connection age.
    pub settings: GrpcSettings,
}

/// Future of tonic's response.
pub(super) type TonicResponse = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;
type TonicService = Box<dyn Fn(Request<Incoming>) -> TonicResponse + Send + Sync>;

/// The gRPC services of a listener.
pub(super) struct Services {
    pub(super) service: Arc<Service>,
    pub(super) max_age: Duration,
    limits: NetLimits,
    metrics: Arc<GrpcMetrics>,
    tollgate: TonicService,
    health: TonicService,
    reflection: Option<(TonicService, TonicService)>,
}

impl Services {
    pub(super) fn new(config: GrpcConfig) -> Services {
        let GrpcConfig { service, limits, drain, metrics, settings } = config;
        // Upper bound only: the body reader enforces the limit of each method before tonic sees the message.
        let max_bytes = limits.max_batch_body.max(limits.max_body);
        let tollgate = TollgateServer::new(TollgateService(service.clone())).max_decoding_message_size(max_bytes);
        let health = HealthServer::new(HealthService::new(service.clone(), drain));
        Services {
            tollgate: tonic_service(tollgate),
            health: tonic_service(health),
            reflection: settings.reflection.then(reflection).flatten(),
            max_age: settings.max_connection_age,
            limits,
            metrics,
            service,
        }
    }

    /// Caps and deadlines.
    pub(super) fn limits(&self) -> &NetLimits {
        &self.limits
    }

    /// Whether a method is enabled.
    pub(super) fn offers(&self, method: GrpcMethod) -> bool {
        self.reflection.is_some() || !matches!(method, GrpcMethod::Reflect | GrpcMethod::ReflectAlpha)
    }

    /// The scope of this `Authorization` value; `None` if it is rejected.
    pub(super) fn authorize(&self, authorization: Option<&[u8]>) -> Option<TokenScope> {
        self.service.authorize(authorization)
    }

    /// Size limit of a method's request message.
    pub(super) fn max_message_bytes(&self, method: GrpcMethod) -> usize {
        match method {
            GrpcMethod::BatchCheck => self.limits().max_batch_body,
            _ => self.limits().max_body,
        }
    }

    /// Dispatches a call to tonic's service.
    pub(super) fn via_tonic(&self, method: GrpcMethod, request: Request<Incoming>) -> TonicResponse {
        match (method, &self.reflection) {
            (GrpcMethod::HealthCheck | GrpcMethod::HealthWatch, _) => (self.health)(request),
            (GrpcMethod::Reflect, Some((v1, _))) => v1(request),
            (GrpcMethod::ReflectAlpha, Some((_, v1alpha))) => v1alpha(request),
            (GrpcMethod::Reflect | GrpcMethod::ReflectAlpha, None) => {
                Box::pin(async { Status::unimplemented("reflection is off").into_http() })
            }
            _ => (self.tollgate)(request),
        }
    }

    /// Counts a completed call.
    pub(super) fn count(&self, method: Option<GrpcMethod>, code: Code) {
        self.metrics.responded(method, code);
    }
}

fn tonic_service<S>(service: S) -> TonicService
where
    S: tonic::codegen::Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    Box::new(move |request| {
        let responding = service.clone().call(request); // generated services are always ready: no `poll_ready`
        Box::pin(async move {
            match responding.await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        })
    })
}

/// Reflection, v1 and v1alpha. `None` never occurs: the embedded descriptors are valid.
fn reflection() -> Option<(TonicService, TonicService)> {
    let builder = || Builder::configure().register_encoded_file_descriptor_set(tollgate_proto::DESCRIPTORS);
    Some((tonic_service(builder().build_v1().ok()?), tonic_service(builder().build_v1alpha().ok()?)))
}
