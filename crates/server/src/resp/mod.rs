//! RESP, the protocol of Redis, as a transport: limits that come with the call, checks against the rules, and what clients
//! want to know before they ask either.
//!
//! | file | decides |
//! |---|---|
//! | [`frame`], `inline` | where a command begins and ends, and what its arguments are |
//! | [`command`] | which commands there are |
//! | `session` | who may ask what, and what is answered |
//! | `transaction` | what is queued between `MULTI` and `EXEC` |
//! | `unfit` | what is no command |
//! | [`throttle`] | `CL.THROTTLE` and `THROTTLE`, to a charge and back |
//! | [`convert`] | `TG.CHECK`, to a request and back |
//! | `about` | what is told of the connection, the commands and the server |
//! | `connection`, `wire` | when bytes are read and written, and for how long anybody is waited for |
//! | [`writer`] | how a reply looks in either version of the protocol |

mod about;
mod access;
pub mod command;
mod connection;
pub mod convert;
pub mod frame;
mod inline;
mod session;
pub mod throttle;
mod transaction;
mod unfit;
mod wire;
pub mod writer;

use std::fmt;
use std::sync::Arc;

use tollgate_core::Time;

pub use self::access::Access;
pub use self::command::Command;

use self::connection::Connection;
use crate::api::Shared;
use crate::config::RespSettings;
use crate::net::{Ground, Peer, Speak, Stream};

/// RESP as a listener speaks it.
pub struct Resp {
    shared: Arc<Shared>,
    settings: RespSettings,
    started: Time,
}

impl Resp {
    /// RESP over what every call is answered with.
    pub fn new(shared: Arc<Shared>, settings: &RespSettings) -> Resp {
        let started = shared.clock.now();
        Resp { shared, settings: settings.clone(), started }
    }
}

impl fmt::Debug for Resp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resp").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Speak for Resp {
    async fn speak(&self, stream: Stream, peer: &Peer, ground: &Ground) {
        Connection::new(stream, peer, ground, self).serve().await;
    }

    fn no_room(&self) -> &'static [u8] {
        b"-ERR max number of clients reached\r\n"
    }
}
