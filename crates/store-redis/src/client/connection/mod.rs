//! One connection to a server: how it is opened, and how requests and replies pass over it.

mod error;
mod handshake;
mod stream;
mod wire;

pub(crate) use self::error::{ConnectError, ConnectionLost};
pub(crate) use self::handshake::{Handshake, resolve, time as parse_time};
pub(crate) use self::wire::{RedisConnection, SLOT_MAP_BYTES};
