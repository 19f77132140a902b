//! GraphQL: what a request would make the server do, said by its query alone.
//!
//! A field costs one unit, and what is below a list costs as often as the list has items: the value of `first`, `last`
//! or `limit`, or 100 where it is not known. Without the schema, a field without such an argument is no list.
//!
//! | file | has |
//! |---|---|
//! | `settings` | how a route prices queries |
//! | `request` | the queries of a request: GET, POST, batches |
//! | `document` | the parsed document: its operation and fragments |
//! | `price` | the cost of an operation |
//! | `factor` | how many items a field asks for |
//! | `persisted` | queries that are allowed where nothing else is |

mod document;
mod duplicates;
mod factor;
mod persisted;
mod price;
mod request;
mod settings;

pub use persisted::PersistedQueries;
pub use settings::GraphqlSpec;

pub(crate) use request::{GraphqlFacts, QUERY_BYTES_MAX};

#[cfg(test)]
mod tests;
