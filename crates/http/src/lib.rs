//! The HTTP data API: check, batch, reserve, slots, explain, forward-auth and health.
//!
//! | item | what |
//! |---|---|
//! | [`Http`] | the protocol of a listener: HTTP/1.1 or HTTP/2 in front of a handler |
//! | [`DataApi`] | the handler of the data listener, in [`api`]: forward-auth, or JSON in, a call of the service, JSON out |
//! | [`forward_auth`] | converts a proxy's check to a request, and the decision to a status |
//! | [`h1`] | HTTP/1.1 framed by hand, for this API alone; HTTP/2 runs on hyper (`tollgate_web::h2`) |

pub mod api;
pub mod forward_auth;
#[doc(hidden)]
pub mod fuzzing;
pub mod h1;

pub use api::{DataApi, DataApiConfig, OPENAPI};
pub use h1::Http;

/// Every path of the data API, for metrics.
pub fn paths() -> impl Iterator<Item = &'static str> {
    api::Route::PATHS.iter().copied().chain([forward_auth::PREFIX])
}
