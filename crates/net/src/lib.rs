//! Shared by all transports: listeners, connection caps, TLS, deadlines, drain and the byte budget.
//!
//! The accept loop enforces caps before anything is read, survives a full descriptor table, and drains: every accepted
//! request is answered. A transport implements [`Protocol`] and does not depend on the listener; the server wraps it in
//! a [`ConnectionHandler`] and passes that to [`accept()`].
//!
//! | item | what |
//! |---|---|
//! | [`Address`], [`Listener`], [`Stream`], [`Peer`] | addresses to listen on, bound sockets, connections |
//! | [`accept()`], [`ConnectionHandler`] | the accept loop, and the TLS handshake, metrics and logs of a connection |
//! | [`Protocol`], [`ListenerContext`] | the trait of a transport, and the context of its connections |
//! | [`NetLimits`], [`ConnectionLimiter`], [`ByteBudget`] | caps and timeouts: connections, and bytes in transit |
//! | [`Deadline`], [`Drain`] | a reusable timer, and graceful shutdown |
//! | [`ProxyHeaders`] | PROXY protocol version 2, from configured load balancers |
//! | [`tls`] | certificates, reloaded when their files change |

mod accept;
mod address;
mod byte_budget;
mod catch_panic;
mod connection_limiter;
mod connection_metrics;
mod deadline;
mod descriptors;
mod drain;
#[doc(hidden)]
pub mod fuzzing;
mod limits;
mod listener;
mod peer;
pub mod proxy_header;
mod stream;
pub mod tls;

pub use accept::{ConnectionHandler, ListenerContext, Protocol, accept, masked_network};
pub use address::Address;
pub use byte_budget::{BudgetPermit, ByteBudget, ConnectionBudget, FREE_BYTES, StreamBudget};
pub use catch_panic::catch_panic;
pub use connection_limiter::{ConnectionLimiter, ConnectionPermit, ConnectionRefusal};
pub use connection_metrics::{ConnectionMetrics, RefusalReason};
pub use deadline::Deadline;
pub use descriptors::raise_descriptor_limit;
pub use drain::{Drain, IDLE_GRACE};
pub use limits::NetLimits;
pub use listener::Listener;
pub use peer::{Peer, PeerCertificate};
pub use proxy_header::ProxyHeaders;
pub use stream::{Rewound, Stream};
