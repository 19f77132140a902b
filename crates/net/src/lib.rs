//! Listeners, connection caps, TLS, deadlines, drain and the byte budget: what every transport stands on.
//!
//! The accept loop is our own because of its duties: caps before a byte is read, survival of a full descriptor table, and a
//! drain that answers everything that was accepted. A transport implements [`Protocol`] and knows nothing of the listener
//! behind it; the wiring puts a [`ConnectionHandler`] in front of it and passes both to [`accept`].

mod accept;
mod address;
mod byte_budget;
mod catch_panic;
mod connection_handler;
mod connection_limiter;
mod connection_metrics;
mod context;
mod deadline;
mod descriptors;
mod drain;
mod limits;
mod listener;
mod peer;
mod stream;
pub mod tls;

pub use accept::{Accept, accept};
pub use address::Address;
pub use byte_budget::{BudgetPermit, ByteBudget, ConnectionBudget, FREE_BYTES, StreamBudget};
pub use catch_panic::catch_panic;
pub use connection_handler::{ConnectionHandler, masked_network};
pub use connection_limiter::{ConnectionLimiter, ConnectionPermit, ConnectionRefusal};
pub use connection_metrics::{ConnectionMetrics, RefusalReason};
pub use context::{ListenerContext, Protocol};
pub use deadline::Deadline;
pub use descriptors::raise_descriptor_limit;
pub use drain::{Drain, IDLE_GRACE};
pub use limits::NetLimits;
pub use listener::Listener;
pub use peer::Peer;
pub use stream::{Rewound, Stream};
