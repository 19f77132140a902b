//! gRPC as a transport: Tollgate's own service, Envoy's rate limit service, health and reflection.
//!
//! Connections are served on `h2` itself, in a loop of our own. That is where the price of a call is decided: the two
//! methods that are called all the time are answered in the task of their connection, without a task, a channel or a box
//! of their own; and where the caps and deadlines are, which a framework would hide. Everything else is carried through
//! the services that tonic generates, over the same streams.
//!
//! | file | does |
//! |---|---|
//! | `connection` | one connection: takes calls in, begins and ends them |
//! | `keep_alive` | how long a connection lives: pings, age, silence, writes that nobody reads, the drain |
//! | `io_activity` | notices whether bytes move |
//! | `call` | what the head of a call says: method, token, deadline |
//! | `fast_path` | the calls that are answered at once |
//! | `via_tonic` | all others, by way of tonic |
//! | `incoming`, `outgoing` | bodies and answers, as fast and as long as they may be |
//! | `message` | the one message of a unary call |
//! | `convert`, `decide` | messages become requests, decisions messages |
//! | `service`, `stream`, `health` | what is answered |

mod call;
mod connection;
mod convert;
mod decide;
mod fast_path;
mod health;
mod incoming;
mod io_activity;
mod keep_alive;
mod message;
mod method;
mod metrics;
mod outgoing;
mod services;
mod stream;
mod timeout;
mod tollgate_v1;
mod via_tonic;

use std::sync::Arc;

use tollgate_config::GrpcSettings;
use tollgate_net::{Drain, ListenerContext, NetLimits, Peer, Protocol, Stream};
use tollgate_service::Service;

pub use self::method::Method;
pub use self::metrics::GrpcMetrics;

use self::services::Services;

/// What the gRPC transport is made of.
pub struct GrpcConfig {
    /// Answers the questions.
    pub service: Arc<Service>,
    /// Caps on messages.
    pub limits: NetLimits,
    /// Health checks fail once it is announced.
    pub drain: Drain,
    /// Counts calls.
    pub metrics: Arc<GrpcMetrics>,
    /// Reflection and connection age.
    pub settings: GrpcSettings,
}

/// gRPC as a listener serves it.
pub struct Grpc(Arc<Services>);

impl Grpc {
    /// gRPC over the service.
    pub fn new(config: GrpcConfig) -> Grpc {
        Grpc(Arc::new(Services::new(config)))
    }
}

impl Protocol for Grpc {
    async fn serve(&self, stream: Stream, _peer: &Peer, context: &ListenerContext) {
        connection::serve(&self.0, stream, context).await;
    }

    fn too_many_connections(&self) -> &'static [u8] {
        b"" // nothing could be said before the caller's settings are known
    }
}
