//! RESP transport (the Redis protocol): throttle commands that carry their own limit, checks against the rules, and the
//! introspection commands that Redis clients send on connect.
//!
//! | file | contents |
//! |---|---|
//! | `connection.rs` | connection loop: reads, answers and writes batches of commands; buffer and time limits |
//! | `wire.rs` | timed reads and writes of the socket |
//! | `command.rs` | table of commands; rejects unknown commands and wrong argument counts |
//! | `session.rs` | session state, authentication, command dispatch |
//! | `access.rs` | password check and bucket keys, shared by all connections |
//! | `transaction.rs` | `MULTI`, `EXEC`, `DISCARD` |
//! | `throttle.rs` | `CL.THROTTLE` and `THROTTLE`: arguments to a charge, decision to a reply |
//! | `convert.rs` | `TG.CHECK`: arguments to a request, decision to a reply |
//! | `about.rs` | introspection: `HELLO`, `CLIENT`, `COMMAND`, `INFO`, `CONFIG`, `SELECT`, `TIME` |
//! | `metrics.rs` | commands, throttles and protocol errors |
//! | `fuzzing.rs` | entry point of the fuzz target |

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
mod wire;

use std::fmt;
use std::sync::Arc;

use tollgate_core::Time;

pub use self::access::RespAccess;
pub use self::command::RespCommand;
pub use self::metrics::{RespFault, RespMetrics};

use self::connection::RespConnection;
use tollgate_config::RespSettings;
use tollgate_net::{ListenerContext, Peer, Protocol, Stream};
use tollgate_service::Service;

/// Dependencies and settings of the RESP transport.
pub struct RespConfig {
    /// Decides the requests.
    pub service: Arc<Service>,
    /// The password and the bucket keys.
    pub access: Arc<RespAccess>,
    /// Counts commands.
    pub metrics: Arc<RespMetrics>,
    /// Rounding and databases.
    pub settings: RespSettings,
}

/// The RESP protocol, as served by a listener.
pub struct Resp {
    service: Arc<Service>,
    access: Arc<RespAccess>,
    metrics: Arc<RespMetrics>,
    settings: RespSettings,
    started: Time,
}

impl Resp {
    /// Builds the transport.
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
        RespConnection::new(stream, peer, context, self).serve().await;
    }

    fn too_many_connections(&self) -> &'static [u8] {
        b"-ERR max number of clients reached\r\n"
    }
}
