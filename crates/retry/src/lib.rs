//! The caller's side of rate limits: how a program behaves towards an API that limits it.
//!
//! [`RetryLayer`] repeats calls that were told to come later, exactly when they were told, and only as often as a
//! budget allows; [`Courtesy`] slows down before a limit is reached; [`Pacer`] keeps to a known limit without any answer
//! at all.
//!
//! ```
//! use std::convert::Infallible;
//! use http::{Request, Response, StatusCode};
//! use http_body_util::Full;
//! use bytes::Bytes;
//! use tollgate_retry::{RetryLayer, RetryPolicy};
//! use tower_layer::Layer;
//! use tower_service::Service;
//!
//! #[derive(Clone)]
//! struct Api; // hyper-util's client, or a closure around reqwest: any service of `http` requests whose body is `Clone`
//!
//! impl Service<Request<Full<Bytes>>> for Api {
//!     type Response = Response<Full<Bytes>>;
//!     type Error = Infallible;
//!     type Future = std::future::Ready<Result<Self::Response, Infallible>>;
//!     # fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> { std::task::Poll::Ready(Ok(())) }
//!     fn call(&mut self, _: Request<Full<Bytes>>) -> Self::Future {
//!         std::future::ready(Ok(Response::new(Full::default())))
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let mut api = RetryLayer::new(RetryPolicy::default()).with_throttle().layer(Api);
//! let answer = api.call(Request::get("https://api.example/orders").body(Full::default()).unwrap()).await.unwrap();
//! assert_eq!(answer.status(), StatusCode::OK);
//! # });
//! ```
//!
//! | question | answered by |
//! |---|---|
//! | does this response say "later", and when? | [`Later`] |
//! | may this call be repeated, after how long? | [`RetryPolicy`], [`Attempts`] |
//! | how many retries may all calls make? | [`RetryAllowance`], shared by the calls of a layer |
//! | is it worth calling at all? | [`ClientThrottle`]: refuses locally what would be refused remotely |
//! | how fast, as the limit comes closer? | [`Courtesy`] |
//! | how fast, where the limit is known? | [`Pacer::acquire`] |
//!
//! Everything that decides is a state machine that takes time and random numbers as values; only the layer and the pacer
//! read a clock and wait.

mod allowance;
mod attempts;
mod body;
mod courtesy;
mod later;
mod layer;
mod pacer;
mod policy;

pub use allowance::RetryAllowance;
pub use attempts::{Attempts, NextAttempt};
pub use body::PeekedBody;
pub use courtesy::Courtesy;
pub use later::Later;
pub use layer::{IDEMPOTENCY_KEY, RetryError, RetryLayer, RetryService};
pub use pacer::{PaceError, Pacer};
pub use policy::{BackoffJitter, RetryPolicy};
pub use tollgate_core::{Limit, ManualClock, Span, Time};
pub use tollgate_overload::{ClientThrottle, RetryBudgetConfig, ThrottleConfig};
