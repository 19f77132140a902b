//! The HTTP data API: check, batch, reserve, slots, explain, forward-auth and health.
//!
//! | file | what |
//! |---|---|
//! | [`DataApi`] | the handler of the data listener: routes a request to the check API or to forward-auth |
//! | [`api`] | JSON in, a call of the service, JSON out |
//! | [`forward_auth`] | a proxy's question becomes a request, the decision a status |
//! | [`h1`] | HTTP/1.1 framed by hand; HTTP/2 is hyper's |

pub mod api;
mod data_api;
pub mod forward_auth;
#[doc(hidden)]
pub mod fuzzing;
pub mod h1;

pub use data_api::{DataApi, DataApiConfig};
pub use h1::Http;

/// Every path of the data API, for metrics.
pub fn paths() -> impl Iterator<Item = &'static str> {
    api::Route::PATHS.iter().copied().chain([forward_auth::PREFIX])
}
