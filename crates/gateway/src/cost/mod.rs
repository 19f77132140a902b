//! What requests of a route cost: read before they are decided, settled when their responses end, however they end.
//!
//! | file | has |
//! |---|---|
//! | `priced_request` | amounts of a request, and its body if that had to be read |
//! | `settlement` | what is settled, from the response as it passes |
//! | `token_stream` | the response of a language model, held to its budget |

mod priced_request;
mod settlement;
mod token_stream;

pub(crate) use priced_request::{PricedRequest, RequestHead};
pub(crate) use settlement::CostSettlement;
pub(crate) use token_stream::TokenStream;
