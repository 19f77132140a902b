//! Language models: what a call will cost, what it has cost so far, and how its stream ends when the budget is spent.
//!
//! | file | has |
//! |---|---|
//! | `settings` | how a route treats calls |
//! | `dialect` | which API a request speaks |
//! | `request`, `body`, `media`, `stream_options`, `rewrite` | the request: prompt, maxima, and the report of usage that is added to a stream |
//! | `reader` | the response, chunk by chunk |
//! | `events_body`, `sse`, `json_body` | a stream of events; one JSON text |
//! | `passage` | what is passed on |
//! | `budget` | how much more must be reserved before a passage goes on |
//! | `tally`, `usage` | what events say of tokens |
//! | `generated`, `text_count` | which values are text of the model, and how much that is |
//! | `tokenizer` | tokens of a prompt, by the vocabulary of the model |
//! | `ending` | ends of streams and refusals in the form of each provider |

mod body;
mod budget;
mod dialect;
mod ending;
mod events_body;
mod generated;
mod json_body;
mod media;
mod passage;
mod reader;
mod request;
mod rewrite;
mod settings;
mod sse;
mod stream_options;
mod tally;
mod text_count;
mod tokenizer;
mod usage;

pub use budget::OutputBudget;
pub use dialect::LlmDialect;
pub use passage::{Passage, StreamPoint};
pub use reader::UsageReader;
pub use request::LlmRequest;
pub use settings::{LlmMeters, LlmSpec, OnExhausted, OtherCalls, TokenCounter};
pub use tokenizer::Tokenizer;
pub use usage::TokenUsage;

#[cfg(test)]
mod tests;
