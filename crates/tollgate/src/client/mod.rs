//! HTTP client of a running server: URL, token, calls and responses.

mod api_call;
mod api_client;
mod api_problem;
mod api_response;
mod api_stream;
mod bearer_token;
mod connector;
mod server_url;

pub use api_call::ApiCall;
pub use api_client::{ApiClient, BrokenConnection};
pub use api_problem::ApiProblem;
pub use api_response::ApiResponse;
pub use bearer_token::BearerToken;
pub use connector::TlsTrust;
pub use server_url::ServerUrl;
