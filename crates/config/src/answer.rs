//! How decisions are answered, as it was configured: names that are known to be right, not yet the types that render.

use tollgate_rules::problem::Fault;
use tollgate_service::render::{DenialStatus, Detail, RenderConfig};

use crate::choice::RefusalDetail;

/// Header styles that may be listed in `headers`; `off` stands alone.
pub const HEADER_STYLES: &[&str] = &[
    "off",
    "x-ratelimit",
    "x-ratelimit-delta",
    "github",
    "twitter",
    "envoy",
    "kong",
    "draft-11",
    "draft-07",
    "draft-06",
    "ratelimit-epoch",
];

/// Settings of answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerSettings {
    /// Header styles, joined by commas: each one of [`HEADER_STYLES`].
    pub headers: String,
    /// How far retries are spread: `off`, a percentage such as `10%`, or a duration such as `5s`.
    pub retry_jitter: String,
    /// Status of a refusal that was asked for as a question: 200 or 429.
    pub refused_status: u16,
    /// Status of a refusal that no waiting will turn: 429, 403 or 413.
    pub never_status: u16,
    /// What the body of a refusal by status tells.
    pub answer: RefusalDetail,
}

impl AnswerSettings {
    /// The same as what renders answers.
    pub fn config(&self) -> Result<RenderConfig, Fault> {
        Ok(RenderConfig {
            headers: self.headers.parse()?,
            retry_jitter: self.retry_jitter.parse()?,
            refused_status: match self.refused_status {
                429 => DenialStatus::TooManyRequests,
                _ => DenialStatus::Ok,
            },
            never_status: self.never_status,
            refusal: match self.answer {
                RefusalDetail::Public => Detail::Public,
                RefusalDetail::Full => Detail::Full,
            },
        })
    }
}

impl Default for AnswerSettings {
    fn default() -> Self {
        Self {
            headers: "x-ratelimit,draft-11".to_owned(),
            retry_jitter: "10%".to_owned(),
            refused_status: 200,
            never_status: 429,
            answer: RefusalDetail::Public,
        }
    }
}
