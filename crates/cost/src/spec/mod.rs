//! The `cost` of a route: which meters a request charges, and how much.
//!
//! ```yaml
//! cost:
//!   bytes: { response: bytes, estimate: 4096 }
//!   items: { request: { json: /orders } }
//!   points: [1, { response: { header: x-points }, estimate: 10 }]
//! ```
//!
//! | file | reads |
//! |---|---|
//! | `read` | the section: `llm`, a number, or meters |
//! | `meter` | the sources of one meter |
//! | `source` | what a source can be |
//! | `graphql`, `llm` | their settings |

mod graphql;
mod llm;
mod meter;
mod read;
mod source;

use std::path::Path;
use std::sync::Arc;

use crate::graphql::PersistedQueries;
use crate::llm::{LlmRequest, LlmSpec, Tokenizer};

pub(crate) use source::ITEMS_BYTES_MAX;
pub use source::{CostFrom, CostSource};

/// The `cost` of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CostSpec {
    /// Meters, in the order of the file.
    pub meters: Vec<MeterCost>,
    /// Calls of language models.
    pub llm: Option<LlmSpec>,
}

/// What is charged to one meter: the sum of its sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterCost {
    /// The name of the meter.
    pub meter: Arc<str>,
    /// Where its amount comes from; at least one.
    pub sources: Vec<CostSource>,
}

impl CostSpec {
    /// The most bytes of a request's body that must be read before the request is decided; `None` if none are. A longer
    /// body is refused.
    pub fn body_bytes_max(&self) -> Option<usize> {
        let llm = self.llm.is_some().then_some(LlmRequest::BODY_BYTES_MAX);
        // Each source refuses what is too long for itself.
        self.sources().filter_map(|source| source.from.body_bytes_max()).chain(llm).max()
    }

    /// The most bytes that a request's body may have, if the route says so. Bodies without `Content-Length` are to be
    /// refused when they exceed it.
    pub fn request_bytes_max(&self) -> Option<u64> {
        self.sources().filter(|source| source.from == CostFrom::RequestBytes).filter_map(|source| source.max).min()
    }

    /// Loads the lists of persisted queries that routes name; `read` reads a file. Until then no query is allowed.
    pub fn load_persisted<E>(&mut self, mut read: impl FnMut(&Path) -> Result<PersistedQueries, E>) -> Result<(), E> {
        for source in self.meters.iter_mut().flat_map(|meter| &mut meter.sources) {
            if let CostFrom::Graphql(graphql) = &mut source.from
                && let Some(path) = &graphql.persisted_only
            {
                graphql.persisted = Arc::new(read(path)?);
            }
        }
        Ok(())
    }

    /// Loads the vocabulary that `llm` names; `read` reads a file. Until then prompts are estimated by their length.
    pub fn load_vocabulary<E>(&mut self, read: impl FnOnce(&Path) -> Result<Tokenizer, E>) -> Result<(), E> {
        if let Some(llm) = &mut self.llm
            && let Some(path) = &llm.tokenizer
        {
            llm.vocabulary = Some(Arc::new(read(path)?));
        }
        Ok(())
    }

    /// The files that the route names: lists of persisted queries, and the vocabulary of a model.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let persisted = self.sources().filter_map(|source| match &source.from {
            CostFrom::Graphql(graphql) => graphql.persisted_only.as_deref(),
            _ => None,
        });
        persisted.chain(self.llm.as_ref().and_then(|llm| llm.tokenizer.as_deref()))
    }

    /// Whether the cost depends on what the body of a request says. Of what passes behind an upgrade nothing is read.
    pub fn reads_request(&self) -> bool {
        self.body_bytes_max().is_some()
    }

    /// Whether bodies of responses are read, so that they must come without a content coding.
    pub fn reads_response(&self) -> bool {
        self.llm.is_some() || self.sources().any(|source| matches!(source.from, CostFrom::ResponseJson(_)))
    }

    /// Whether amounts are settled after the response.
    pub fn is_settled(&self) -> bool {
        self.llm.is_some() || self.sources().any(CostSource::is_settled)
    }

    /// The names of all meters that requests of the route charge.
    pub fn meter_names(&self) -> impl Iterator<Item = &Arc<str>> {
        let llm = self.llm.iter().flat_map(|llm| llm.meters.names());
        self.meters.iter().map(|meter| &meter.meter).chain(llm)
    }

    fn sources(&self) -> impl Iterator<Item = &CostSource> {
        self.meters.iter().flat_map(|meter| &meter.sources)
    }
}
