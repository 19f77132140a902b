//! What a request and its response cost, for the gateway: pure, without sockets and without a clock.
//!
//! | module | has |
//! |---|---|
//! | `spec` | the `cost` of a route, read from YAML |
//! | `request`, `response` | amounts before a request is forwarded, and after its response |
//! | `llm` | calls of language models: estimates, reports of usage, ends of streams |
//! | `graphql` | what GraphQL queries cost |
//! | `amounts` | amounts by meter |
//! | `json` | JSON read as it passes |
//! | `error` | why a request is refused before anything is charged |

mod amounts;
mod error;
pub mod graphql;
pub mod json;
pub mod llm;
mod request;
mod response;
pub mod spec;

pub use amounts::MeterAmounts;
pub use error::{CostError, CostErrorKind};
pub use request::{CostFacts, RequestCost};
pub use response::ResponseCost;
pub use spec::CostSpec;

#[cfg(test)]
mod tests;
