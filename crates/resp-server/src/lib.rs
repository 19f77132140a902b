//! RESP, the protocol of Redis, as a transport: limits that come with the call, checks against the rules, and what clients
//! want to know before they ask either.
//!
//! | file | decides |
//! |---|---|
//! | [`command`] | which commands there are |
//! | `session` | who may ask what, and what is answered |
//! | `transaction` | what is queued between `MULTI` and `EXEC` |
//! | `unfit` | what is no command |
//! | [`throttle`] | `CL.THROTTLE` and `THROTTLE`, to a charge and back |
//! | [`convert`] | `TG.CHECK`, to a request and back |
//! | `about` | what is told of the connection, the commands and the server |
//! | `connection`, `wire` | when bytes are read and written, and for how long anybody is waited for |

mod about;
mod access;
pub mod command;
mod connection;
pub mod convert;
#[doc(hidden)]
pub mod fuzzing;
mod metrics;
mod session;
pub mod throttle;
mod transaction;
mod unfit;
mod wire;

use std::fmt;
use std::sync::Arc;

use tollgate_core::Time;

pub use self::access::RespAccess;
pub use self::command::RespCommand;
pub use self::metrics::{RespFault, RespMetrics};

use self::connection::Connection;
use tollgate_config::RespSettings;
use tollgate_net::{ListenerContext, Peer, Protocol, Stream};
use tollgate_service::Service;

/// What the RESP transport is made of.
pub struct RespConfig {
    /// Answers the questions.
    pub service: Arc<Service>,
    /// The password, and the names of buckets.
    pub access: Arc<RespAccess>,
    /// Counts commands.
    pub metrics: Arc<RespMetrics>,
    /// Rounding and databases.
    pub settings: RespSettings,
}

/// RESP as a listener serves it.
pub struct Resp {
    service: Arc<Service>,
    access: Arc<RespAccess>,
    metrics: Arc<RespMetrics>,
    settings: RespSettings,
    started: Time,
}

impl Resp {
    /// RESP over the service.
    pub fn new(config: RespConfig) -> Resp {
        let RespConfig { service, access, metrics, settings } = config;
        let started = service.clock.now();
        Resp { service, access, metrics, settings, started }
    }
}

impl fmt::Debug for Resp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resp").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Protocol for Resp {
    async fn serve(&self, stream: Stream, peer: &Peer, context: &ListenerContext) {
        Connection::new(stream, peer, context, self).serve().await;
    }

    fn too_many_connections(&self) -> &'static [u8] {
        b"-ERR max number of clients reached\r\n"
    }
}
