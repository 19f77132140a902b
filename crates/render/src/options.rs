//! Options of rendering: of the server, and of one call.

use super::retry::Jitter;
use super::style::HeaderStyles;

/// How decisions are rendered, for all callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderConfig {
    /// Which families of header fields are sent. Default `x-ratelimit,draft-11`.
    pub headers: HeaderStyles,
    /// What `Retry-After` adds to waits, so that denied callers do not all retry at once. Default 10 %.
    pub retry_jitter: Jitter,
    /// The status of a denial where the call names none. Default 200.
    pub denial_status: DenialStatus,
    /// The status of a denial that no waiting helps, where denials have one. Default 429; 403 and 413 are usual too.
    pub never_status: u16,
    /// The detail of a denial by status. Default [`Detail::Public`].
    pub denial_detail: Detail,
    /// Whether responses name the id of the decision, in the field `X-Decision-Id` and in the body. Default no.
    pub decision_ids: bool,
}

/// The detail of a denial by status: proxies pass it on to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// What concerns the client: its limit, what is left, when to retry.
    #[default]
    Public,
    /// Everything in the plain response: also the mode, the generation and every other rule.
    Full,
}

impl Default for RenderConfig {
    fn default() -> Self {
        RenderConfig {
            headers: HeaderStyles::default(),
            retry_jitter: Jitter::default(),
            denial_status: DenialStatus::Ok,
            never_status: 429,
            denial_detail: Detail::Public,
            decision_ids: false,
        }
    }
}

/// The status of a denial where the call names none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenialStatus {
    /// 200: the check succeeded, and its result is a denial.
    #[default]
    Ok,
    /// 429: for proxies that pass the status on.
    TooManyRequests,
}

/// How one call wants its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseOptions {
    /// The path under which the API was called.
    pub dialect: Dialect,
    /// Whether a denial is a status of its own (`?status=429`); `None` leaves it to the configuration.
    pub deny_by_status: Option<bool>,
    /// The status of a denial by a limit, in place of 429.
    pub limited_status: Option<u16>,
    /// The media type of a denial by status.
    pub media: Media,
    /// A random number for this response: selects the jitter of its wait.
    pub random: u64,
    /// How a denial because the store is away reads.
    pub closed: ClosedReason,
}

/// How a denial because the store is away reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClosedReason {
    /// `store_unavailable`, to come back soon: the caller is a program of the operator.
    #[default]
    StoreUnavailable,
    /// `overload`, to come back when what was shed does: the caller is anyone, and stores are no business of theirs.
    Overload,
}

/// How a proxy wants its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyResponseOptions {
    /// The options of any call.
    pub options: ResponseOptions,
    /// The status of a denial.
    pub denied: u16,
    /// The status of a denial because the store is away.
    pub closed: u16,
    /// The status of an invalid request.
    pub unreadable: u16,
}

/// The path under which the API was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// `/v1/…` and `/rate-limit/check`: nothing to wait for is `null`.
    #[default]
    V1,
    /// `/check`: nothing to wait for is `0`.
    Alias,
}

/// The media type of a denial by status.
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
