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
//! | `keeper` | how long a connection lives: pings, age, silence, writes that nobody reads, the drain |
//! | `pulse` | notices whether bytes move |
//! | `call` | what the head of a call says: method, token, deadline |
//! | `hot` | the calls that are answered at once |
//! | `carry` | all others, by way of tonic |
//! | `incoming`, `outgoing` | bodies and answers, as fast and as long as they may be |
//! | `message` | the one message of a unary call |
//! | `convert`, `decide` | messages become requests, decisions messages |
//! | `service`, `stream`, `health` | what is answered |

mod call;
mod carry;
mod connection;
mod convert;
mod decide;
mod desk;
mod health;
mod hot;
mod incoming;
mod keeper;
mod message;
mod method;
mod outgoing;
mod pulse;
mod service;
mod stream;
mod timeout;

use std::sync::Arc;

use crate::api::Shared;
use crate::config::GrpcSettings;
use crate::net::{Ground, Peer, Speak, Stream};

pub use self::method::Method;

use self::desk::Desk;

/// gRPC as a listener speaks it.
pub struct Grpc(Arc<Desk>);

impl Grpc {
    /// gRPC over what every call is answered with.
    pub fn new(shared: Arc<Shared>, settings: &GrpcSettings) -> Grpc {
        Grpc(Arc::new(Desk::new(shared, settings)))
    }
}

impl Speak for Grpc {
    async fn speak(&self, stream: Stream, _peer: &Peer, ground: &Ground) {
        connection::serve(&self.0, stream, ground).await;
    }

    fn no_room(&self) -> &'static [u8] {
        b"" // nothing could be said before the caller's settings are known
    }
}
