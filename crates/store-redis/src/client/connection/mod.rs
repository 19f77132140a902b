//! A connection to a server.

mod error;
mod handshake;
mod stream;
mod wire;

pub(crate) use self::error::ConnectError;
pub(crate) use self::handshake::{Handshake, resolve, time as parse_time};
pub(crate) use self::wire::{RedisConnection, SLOT_MAP_BYTES};
