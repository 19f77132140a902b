//! One connection to a server: how it is opened, and how requests and replies pass over it.

mod error;
mod handshake;
mod stream;
mod wire;

pub(crate) use self::error::{Broken, ConnectError};
pub(crate) use self::handshake::{Greeting, resolve, time as told_time};
pub(crate) use self::wire::{Connection, SLOT_MAP_BYTES};
