//! What all connections of a listener answer their calls with.

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
use super::method::Method;
use super::tollgate_v1::TollgateService;
use super::{GrpcConfig, GrpcMetrics};
use tollgate_net::NetLimits;
use tollgate_service::Service;
use tollgate_service::data_tokens::TokenScope;

/// What tonic makes of a call.
pub(super) type Carried = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;
type Carrier = Box<dyn Fn(Request<Incoming>) -> Carried + Send + Sync>;

/// The services of a listener.
pub(super) struct Services {
    pub(super) service: Arc<Service>,
    pub(super) max_age: Duration,
    limits: NetLimits,
    metrics: Arc<GrpcMetrics>,
    tollgate: Carrier,
    health: Carrier,
    reflection: Option<(Carrier, Carrier)>,
}

impl Services {
    pub(super) fn new(config: GrpcConfig) -> Services {
        let GrpcConfig { service, limits, drain, metrics, settings } = config;
        // Longer ones are not even read: a body knows how long a message of its method may be.
        let most = limits.max_batch_body.max(limits.max_body);
        let tollgate = TollgateServer::new(TollgateService(service.clone())).max_decoding_message_size(most);
        let health = HealthServer::new(HealthService::new(service.clone(), drain));
        Services {
            tollgate: carrier(tollgate),
            health: carrier(health),
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

    /// Whether a method can be called here.
    pub(super) fn offers(&self, method: Method) -> bool {
        self.reflection.is_some() || !matches!(method, Method::Reflect | Method::ReflectAlpha)
    }

    /// What this `Authorization` value opens; `None` if nothing.
    pub(super) fn authorize(&self, authorization: Option<&[u8]>) -> Option<TokenScope> {
        self.service.authorize(authorization)
    }

    /// The longest message of a method.
    pub(super) fn longest(&self, method: Method) -> usize {
        match method {
            Method::BatchCheck => self.limits().max_batch_body,
            _ => self.limits().max_body,
        }
    }

    /// Answers a call by way of tonic.
    pub(super) fn via_tonic(&self, method: Method, request: Request<Incoming>) -> Carried {
        match (method, &self.reflection) {
            (Method::HealthCheck | Method::HealthWatch, _) => (self.health)(request),
            (Method::Reflect, Some((v1, _))) => v1(request),
            (Method::ReflectAlpha, Some((_, v1alpha))) => v1alpha(request),
            (Method::Reflect | Method::ReflectAlpha, None) => {
                Box::pin(async { Status::unimplemented("reflection is off").into_http() })
            }
            _ => (self.tollgate)(request),
        }
    }

    /// A call was answered.
    pub(super) fn count(&self, method: Option<Method>, code: Code) {
        self.metrics.responded(method, code);
    }
}

fn carrier<S>(service: S) -> Carrier
where
    S: tonic::codegen::Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    Box::new(move |request| {
        let answering = service.clone().call(request); // generated services are always ready
        Box::pin(async move {
            match answering.await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        })
    })
}

/// Reflection by both of its names. Our own descriptors cannot be unreadable.
fn reflection() -> Option<(Carrier, Carrier)> {
    let builder = || Builder::configure().register_encoded_file_descriptor_set(tollgate_proto::DESCRIPTORS);
    Some((carrier(builder().build_v1().ok()?), carrier(builder().build_v1alpha().ok()?)))
}
