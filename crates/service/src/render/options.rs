//! How answers look: for all callers, and as one call wants its own.

use super::retry::Jitter;
use super::style::HeaderStyles;

/// How answers look, for all callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderConfig {
    /// Which families of header fields are sent. Default `x-ratelimit,draft-11`.
    pub headers: HeaderStyles,
    /// What `Retry-After` adds to waits, so that refused callers do not come back all at once. Default 10 %.
    pub retry_jitter: Jitter,
    /// The status of a refusal where the call names none. Default 200.
    pub refused_status: DenialStatus,
    /// The status of a refusal that no waiting helps, where refusals have one. Default 429; 403 and 413 are usual too.
    pub never_status: u16,
    /// What the body of a refusal by status tells. Default what callers of the API behind may see.
    pub refusal: Detail,
}

/// How much a refusal by status tells: proxies pass it on to whoever they refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// What concerns the caller: its limit, what is left, when to come back.
    #[default]
    Public,
    /// Everything that the plain answer tells: also the mode, the generation and what every other rule says.
    Full,
}

impl Default for RenderConfig {
    fn default() -> Self {
        RenderConfig {
            headers: HeaderStyles::default(),
            retry_jitter: Jitter::default(),
            refused_status: DenialStatus::Ok,
            never_status: 429,
            refusal: Detail::Public,
        }
    }
}

/// The status of a refusal where the call names none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenialStatus {
    /// 200: the question was answered, and the answer is no.
    #[default]
    Ok,
    /// 429: for proxies that pass the status on.
    TooManyRequests,
}

/// How one call wants its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseOptions {
    /// By which of its names the API was called.
    pub dialect: Dialect,
    /// Whether a denial is a status of its own (`?status=429`); `None` leaves it to the configuration.
    pub refuse_by_status: Option<bool>,
    /// The media type of a refusal by status.
    pub media: Media,
    /// A random number, drawn for this answer: where in the jitter its wait falls.
    pub random: u64,
}

/// How a proxy wants its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyOptions {
    /// As any other call.
    pub options: ResponseOptions,
    /// The status of a refusal.
    pub refused: u16,
    /// The status of a refusal because the store is away.
    pub closed: u16,
    /// The status of what is no request.
    pub unreadable: u16,
}

/// By which of its names the API was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// `/v1/…` and `/rate-limit/check`: nothing to wait for is `null`.
    #[default]
    V1,
    /// `/check`: nothing to wait for is `0`.
    Alias,
}

/// The media type of a refusal by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Media {
    /// `application/problem+json`
    #[default]
    Problem,
    /// `application/json`, with the same members.
    Json,
}

impl Media {
    /// What an `Accept` field asks for: plain JSON only where that is named and problem details are not.
    pub fn accepted(accept: &[u8]) -> Media {
        let names = |media: &[u8]| accept.windows(media.len()).any(|part| part.eq_ignore_ascii_case(media));
        match names(b"application/json") && !names(b"application/problem+json") {
            true => Media::Json,
            false => Media::Problem,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Media::Problem => "application/problem+json",
            Media::Json => "application/json",
        }
    }
}
