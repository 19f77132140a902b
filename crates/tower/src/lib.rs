//! Rate limiting for axum, hyper and tonic: a [`tower`](https://docs.rs/tower) layer over an embedded engine or a server.
//!
//! ```
//! use axum::{Router, routing::get};
//! use tollgate_tower::{Engine, TollgateLayer, rules_from_yaml};
//!
//! # fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let rules = rules_from_yaml("rules: [{ key_by: ip, limit: { requests: 100, window: 1m, burst: 20 } }]")?;
//! let limits = TollgateLayer::embedded(Engine::in_memory(rules));
//! let app: Router = Router::new().route("/api/orders/{id}", get(async || "an order")).layer(limits);
//! // axum::serve(listener, app.into_make_service_with_connect_info::<std::net::SocketAddr>())
//! # Ok(()) }
//! # serve().unwrap();
//! ```
//!
//! For each request the layer identifies the caller, decides, and passes it on or answers. What is passed on comes back with
//! the header fields of the decision; what is refused is answered as a Tollgate server answers it: 429 (or 503 while a
//! store is away) with problem details, `Retry-After` and the rate limit fields, and `RESOURCE_EXHAUSTED` to callers of gRPC.
//!
//! # Who is asking
//!
//! The client's address, always: that of the connection, or behind [`trusted proxies`](TollgateLayer::trusted_proxies) the
//! last entry of `X-Forwarded-For` that is not one of them, read from the right over all fields of that name. What the
//! application has verified is added by [`identify`](TollgateLayer::identify):
//!
//! ```
//! # use tollgate_tower::{CallerAttributes, Engine, TollgateLayer, rules_from_yaml};
//! # let engine = Engine::in_memory(rules_from_yaml("rules: [{ key_by: api_key, limit: { requests: 9, window: 1s } }]").unwrap());
//! #[derive(Clone)]
//! struct Account { id: String, plan: String } // an extension that the authentication before this layer sets
//! let limits = TollgateLayer::embedded(engine).identify(|request| match request.extensions.get::<Account>() {
//!     Some(account) => CallerAttributes::new().user_id(&account.id).tier(&account.plan),
//!     None => CallerAttributes::new(), // the address
//! });
//! ```
//!
//! # What it asks for
//!
//! The endpoint is the method and the path as the server received it (`GET /api/orders/7`), with the prefix of routers that it
//! is nested in, made canonical; or by [`by_route`](TollgateLayer::by_route) the route that matched. `HEAD` counts as `GET`. A
//! path that servers could read in two ways (`/a%2Fb`, `/../x`) is answered 400 and never passed on, whatever the router
//! makes of it.
//!
//! # Costs
//!
//! [`cost`](TollgateLayer::cost) is the price of a request in requests, by route if the layer is that of a route.
//! [`costs`](TollgateLayer::costs) reserves amounts of other meters before the handler runs, and the handler settles what it
//! used by an extension of its response, [`UsedAmounts`]. Slots of concurrency rules are held until the response body has
//! ended. A request that is dropped at any time settles its reservation and returns its slot.

/// Compiles and runs the Rust examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/library.md")]
#[doc = include_str!("../../../docs/guide/axum.md")]
struct Pages;

mod answer;
mod backend;
mod body;
mod caller;
mod embedded;
mod endpoint;
mod event;
mod future;
mod grpc;
mod hold;
mod layer;
#[cfg(feature = "client")]
mod remote;
mod shared;
mod unclaimed;

pub use answer::LimitedResponse;
pub use backend::{Asked, LimitBackend, LimitQuestion, Limited};
pub use body::LimitedBody;
pub use caller::{CallerAttributes, PeerAddress};
pub use event::LimitEvent;
pub use future::LimitFuture;
pub use hold::{AmountsFuture, HeldAmount, HeldCharges, UsedAmounts};
pub use layer::{LimitedService, TollgateLayer};
pub use shared::LimitAmounts;

#[cfg(feature = "client")]
pub use tollgate_client as client;
pub use tollgate_core::{Attribute, DetachedRequest, ManualClock, Request, Span, Time};
pub use tollgate_engine::{self as engine, Engine, rules_from_yaml};
pub use tollgate_render::{HeaderStyles, RenderConfig};
pub use tollgate_rules::address::Cidr;
