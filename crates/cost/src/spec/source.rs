//! Where an amount comes from.

use std::num::NonZeroU64;

use http::HeaderName;

use crate::graphql::{GraphqlSpec, QUERY_BYTES_MAX};
use crate::json::JsonPointer;

/// Longest body that is read to count items in it.
pub(crate) const ITEMS_BYTES_MAX: usize = 1 << 20;

/// One source of an amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostSource {
    /// What is counted.
    pub from: CostFrom,
    /// How much of it is one unit; parts of a unit count as one.
    pub per: NonZeroU64,
    /// Units reserved where the amount is not known before the request is forwarded.
    pub estimate: u64,
    /// More of it than this is refused.
    pub max: Option<u64>,
}

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostFrom {
    /// Always this much.
    Fixed(u64),
    /// Bytes of the request's body.
    RequestBytes,
    /// Values of a parameter of the query: `ids=1,2,3`, or repeated.
    QueryItems(String),
    /// Items of a list in a JSON body.
    JsonItems(JsonPointer),
    /// Calls of a JSON-RPC batch.
    JsonRpcCalls,
    /// Units of GraphQL queries.
    Graphql(Box<GraphqlSpec>),
    /// An integer in a header field of the response.
    ResponseHeader(HeaderName),
    /// A number in a JSON body of the response.
    ResponseJson(JsonPointer),
    /// Bytes of the response's body.
    ResponseBytes,
    /// Milliseconds that the upstream took.
    UpstreamMs,
}

impl CostSource {
    /// Always this much.
    pub fn fixed(amount: u64) -> CostSource {
        CostSource { from: CostFrom::Fixed(amount), per: NonZeroU64::MIN, estimate: amount, max: None }
    }

    /// Whether the amount is known only after the response, or the body of the request, has passed.
    pub fn is_settled(&self) -> bool {
        self.from.is_response() || self.from == CostFrom::RequestBytes
    }

    /// Units of this much.
    pub(crate) fn units(&self, counted: u64) -> u64 {
        counted.div_ceil(self.per.get())
    }
}

impl CostFrom {
    pub(crate) fn is_response(&self) -> bool {
        matches!(self, Self::ResponseHeader(_) | Self::ResponseJson(_) | Self::ResponseBytes | Self::UpstreamMs)
    }

    /// The most bytes of the request's body that must be read before the request is decided.
    pub(super) fn body_bytes_max(&self) -> Option<usize> {
        match self {
            Self::JsonItems(_) | Self::JsonRpcCalls => Some(ITEMS_BYTES_MAX),
            Self::Graphql(_) => Some(QUERY_BYTES_MAX),
            _ => None,
        }
    }

    /// Whether a request can have too much of it.
    pub(super) fn may_have_max(&self) -> bool {
        matches!(
            self,
            Self::RequestBytes | Self::QueryItems(_) | Self::JsonItems(_) | Self::JsonRpcCalls | Self::Graphql(_)
        )
    }
}
