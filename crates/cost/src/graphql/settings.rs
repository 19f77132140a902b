//! How a route prices GraphQL.

use std::path::PathBuf;
use std::sync::Arc;

use super::persisted::PersistedQueries;

/// `graphql`, with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphqlSpec {
    /// Deepest nesting of fields.
    pub depth_max: u64,
    /// Most fields of a request, fragments expanded.
    pub fields_max: u64,
    /// Most operations of a batch.
    pub batch_max: u64,
    /// Items of a list whose length the query does not say.
    pub list_factor: u64,
    /// Arguments that say how long a list is.
    pub list_arguments: Vec<String>,
    /// Units of `__schema` and `__type`, beside those of the fields below.
    pub introspection: u64,
    /// Where the only queries that are allowed are listed.
    pub persisted_only: Option<PathBuf>,
    /// Units of a persisted query whose text is not known.
    pub persisted_cost: u64,
    /// What that file lists; none until it is loaded.
    pub persisted: Arc<PersistedQueries>,
}

impl Default for GraphqlSpec {
    fn default() -> GraphqlSpec {
        GraphqlSpec {
            depth_max: 10,
            fields_max: 1_000,
            batch_max: 10,
            list_factor: 100,
            list_arguments: ["first", "last", "limit"].map(str::to_owned).to_vec(),
            introspection: 100,
            persisted_only: None,
            persisted_cost: 100,
            persisted: Arc::default(),
        }
    }
}
