//! How a route treats calls of language models.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use super::dialect::LlmDialect;
use super::tokenizer::Tokenizer;
use super::usage::TokenUsage;
use crate::amounts::MeterAmounts;

/// `cost: llm`, with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlmSpec {
    /// The API; detected by path and body without it.
    pub dialect: Option<LlmDialect>,
    /// How tokens are estimated until they are reported.
    pub counter: TokenCounter,
    /// The file with the vocabulary that prompts are encoded with, relative to the folder of the routes file.
    pub tokenizer: Option<PathBuf>,
    /// What that file says; `counter` estimates prompts without it.
    pub vocabulary: Option<Arc<Tokenizer>>,
    /// Output tokens reserved at first, where a stream can be extended or the request names no maximum.
    pub reserve: u64,
    /// Output tokens by which the reservation of a stream is extended.
    pub step: u64,
    /// How a stream ends when the budget is spent.
    pub on_exhausted: OnExhausted,
    /// Whether streams that would not report their usage are made to.
    pub include_usage: bool,
    /// Whether calls may be answered before their response is generated.
    pub background: bool,
    /// What happens to requests that are no call of a language model.
    pub others: OtherCalls,
    /// The meters that are charged.
    pub meters: LlmMeters,
}

impl Default for LlmSpec {
    fn default() -> LlmSpec {
        LlmSpec {
            dialect: None,
            counter: TokenCounter::default(),
            tokenizer: None,
            vocabulary: None,
            reserve: 1_024,
            step: 256,
            on_exhausted: OnExhausted::Finish,
            include_usage: true,
            background: false,
            others: OtherCalls::Pass,
            meters: LlmMeters::default(),
        }
    }
}

/// How the length of a text becomes an estimate of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenCounter {
    /// Bytes of UTF-8, divided by this and rounded up.
    BytesPerToken(NonZeroU64),
}

impl Default for TokenCounter {
    fn default() -> TokenCounter {
        TokenCounter::BytesPerToken(NonZeroU64::MIN.saturating_add(3))
    }
}

impl TokenCounter {
    /// The estimate for this many bytes of text.
    pub fn tokens(self, bytes: u64) -> u64 {
        match self {
            TokenCounter::BytesPerToken(per) => bytes.div_ceil(per.get()),
        }
    }
}

/// How a stream ends when the budget is spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExhausted {
    /// As if the model had reached its maximum: `finish_reason: length`.
    #[default]
    Finish,
    /// With the provider's error.
    Cut,
}

/// What happens to requests that are no call of a language model, such as a list of models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtherCalls {
    /// They pass, and cost no tokens.
    #[default]
    Pass,
    /// They are refused.
    Reject,
}

/// The meters that are charged; those without a name are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlmMeters {
    /// Tokens of the prompt, cached ones included.
    pub input: Option<Arc<str>>,
    /// Generated tokens, hidden reasoning included.
    pub output: Option<Arc<str>>,
    /// Tokens of the prompt that came from the provider's cache.
    pub cached: Option<Arc<str>>,
    /// Input and output together.
    pub total: Option<Arc<str>>,
}

impl Default for LlmMeters {
    fn default() -> LlmMeters {
        LlmMeters {
            input: Some("input_tokens".into()),
            output: Some("output_tokens".into()),
            cached: None,
            total: None,
        }
    }
}

impl LlmMeters {
    /// What a usage charges.
    pub fn amounts(&self, usage: &TokenUsage) -> MeterAmounts {
        let mut amounts = MeterAmounts::default();
        let all = [
            (&self.input, usage.input),
            (&self.output, usage.output),
            (&self.cached, usage.cached),
            (&self.total, usage.input.saturating_add(usage.output)),
        ];
        for (meter, amount) in all {
            if let Some(meter) = meter {
                amounts.add(meter, amount);
            }
        }
        amounts
    }

    /// The names of all meters.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        [&self.input, &self.output, &self.cached, &self.total].into_iter().flatten()
    }
}
