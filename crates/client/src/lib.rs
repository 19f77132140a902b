//! Client of the Tollgate rate limiter: HTTP and gRPC behind one type.
//!
//! ```no_run
//! use tollgate_client::{Attribute, Client, Request};
//!
//! # async fn handler() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("http://127.0.0.1:8080")?; // or grpc://, https://, grpcs://, unix:/run/tollgate.sock
//! let request = Request::new().with(Attribute::UserId, "42").with(Attribute::Endpoint, "POST /api/orders");
//! let decision = client.check(&request).await?;
//! if !decision.allowed {
//!     println!("come back in {:?}", decision.retry_after);
//! }
//! # Ok(()) }
//! ```
//!
//! | call | what it does |
//! |---|---|
//! | [`Client::check`], [`Client::check_batch`] | decisions |
//! | [`Client::reserve`], [`Client::extend`], [`Client::settle`] | estimates now, real amounts later |
//! | [`Client::acquire_slot`] | a [`SlotGuard`]: renews itself, and releases its slot when it is dropped |
//! | [`Client::acquire`] | waits until the limit has room, up to a deadline |
//! | [`Client::usage`] | what a client has used |
//! | [`Prefetch`] | decisions from units taken in advance: a hot key costs one call per hundred decisions |
//! | [`Courtesy`] | slows callers down as `remaining` nears zero |
//!
//! # What is promised
//!
//! - **At most one charge.** A call that may have reached the server is never sent again. One that could not connect is
//!   sent once more, within its deadline. The time that is left travels with the call, so that the server charges nothing
//!   after the caller has gone.
//! - **A decision in time.** A call takes at most [`ClientConfig::timeout`] (250 ms), connection included. Where there is
//!   no decision then, [`OnError`] decides: `open`, `closed`, or `local`, a limiter in this process. The decision says so in
//!   [`mode`](RemoteDecision::mode). Errors are only what the caller can correct: a path that no server accepts.
//! - **A server in trouble is left alone.** After five failures in a row no call is made for a second, then one; each
//!   further failure doubles the pause, up to 30 s.
//! - **Bounded.** Answers of more than a megabyte are refused; a guard is one task; a [`Prefetch`] has at most the keys and
//!   units of its configuration.

mod acquire;
mod client;
mod client_url;
mod config;
mod decision;
mod failure;
mod guard;
mod local;
mod outage;
mod prefetch;
mod reservation;
mod slot;
mod transport;
mod waiting_line;

pub use client::Client;
pub use config::{ClientConfig, ClientConfigError, OnError};
pub use decision::{RemoteDecision, RuleResult, ViolatedRule};
pub use failure::{CallError, Outage, OutageKind, RequestRejected};
pub use local::{FALLBACK_KEYS_MAX, LocalLimiter};
pub use prefetch::{Prefetch, PrefetchConfig};
pub use reservation::{RemoteReservation, RemoteSettlement};
pub use slot::SlotGuard;
pub use transport::HttpDecision;

pub use tollgate_core::{Attribute, Limit, ManualClock, Request, Span, Time};
pub use tollgate_retry::{self as retry, Courtesy};
