//! Sockets: where we listen, who may come in, how long anything may take, and how it all ends.
//!
//! The accept loop is our own because its duties are: caps before anything is read, survival of a full descriptor
//! table, and a drain that answers what was accepted. What is said over a connection is the business of [`crate::http`].

mod accept;
mod address;
mod deadline;
pub(crate) mod descriptors;
pub(crate) mod drain;
mod ground;
mod guests;
mod limits;
mod listener;
mod peer;
mod stream;
pub mod tls;
mod transit;

pub use accept::{Accept, accept};
pub use address::Address;
pub(crate) use deadline::Deadline;
pub use drain::Drain;
pub use ground::{Ground, Speak};
pub use guests::{Guest, Guests, Refusal};
pub use limits::NetLimits;
pub use listener::Listener;
pub use peer::Peer;
pub use stream::{Rewound, Stream};
pub(crate) use transit::{FREE_BYTES, Place, Share};
pub use transit::{Room, Transit};
