//! Settings of responses: validated names, not yet the types that render.

use tollgate_rules::problem::ParseError;
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

/// Settings of responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerSettings {
    /// Header styles, joined by commas: each one of [`HEADER_STYLES`].
    pub headers: String,
    /// How far retries are spread: `off`, a percentage such as `10%`, or a duration such as `5s`.
    pub retry_jitter: String,
    /// Status of a denial where the call names none: 200 or 429.
    pub refused_status: u16,
    /// Status of a denial that no waiting helps: 429, 403 or 413.
    pub never_status: u16,
    /// The detail of a denial by status.
    pub answer: RefusalDetail,
    /// Whether responses name the id of the decision.
    pub decision_ids: bool,
}

impl AnswerSettings {
    /// The configuration of the renderer.
    pub fn config(&self) -> Result<RenderConfig, ParseError> {
        Ok(RenderConfig {
            headers: self.headers.parse()?,
            retry_jitter: self.retry_jitter.parse()?,
            denial_status: match self.refused_status {
                429 => DenialStatus::TooManyRequests,
                _ => DenialStatus::Ok,
            },
            never_status: self.never_status,
            denial_detail: match self.answer {
                RefusalDetail::Public => Detail::Public,
                RefusalDetail::Full => Detail::Full,
            },
            decision_ids: self.decision_ids,
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
            decision_ids: false,
        }
    }
}
