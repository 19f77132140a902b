//! Why a request could not be forwarded.

use std::error::Error;
use std::{fmt, io};

use tollgate_web::HttpError;

/// Why a request could not be forwarded, or its response not be read.
#[derive(Debug)]
pub(crate) enum UpstreamError {
    /// Every server is left out, or busy.
    NoServer,
    /// The upstream has as many requests in flight as it may.
    Full,
    /// Shed, by the one of the protections that has this name.
    Shed(&'static str),
    /// Most requests failed, and for a while none are sent.
    BreakerOpen,
    /// No connection.
    Connect(io::Error),
    /// The server speaks HTTP/2 alone, which has no upgrades.
    NoUpgrade,
    /// A step took too long.
    Timeout(UpstreamStep),
    /// The body of the caller's request cannot be read.
    RequestBody(HttpError),
    /// The response has two framings, or one that is not understood: readers disagree about where it ends.
    TwoFramings,
    /// The server switched to another protocol, which the request did not ask for.
    UnaskedUpgrade,
    /// The connection broke, or the response is not HTTP.
    Broken(hyper::Error),
}

/// A step of an exchange that has a time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamStep {
    Connect,
    FirstByte,
    Total,
}

impl UpstreamError {
    /// The cause of an error of hyper: the caller's body, or the server.
    pub(crate) fn of(error: hyper::Error) -> UpstreamError {
        let mut source = error.source();
        while let Some(cause) = source {
            if let Some(cause) = cause.downcast_ref::<HttpError>() {
                return UpstreamError::RequestBody(*cause);
            }
            source = cause.source();
        }
        UpstreamError::Broken(error)
    }

    /// True if the server is to blame: it counts towards leaving the server out.
    pub(crate) fn blames_server(&self) -> bool {
        use UpstreamError::{Broken, Connect, Timeout, TwoFramings, UnaskedUpgrade};
        matches!(self, Connect(_) | Timeout(_) | TwoFramings | UnaskedUpgrade | Broken(_))
    }

    /// True if no server was given anything of the request.
    pub(crate) fn is_unsent(&self) -> bool {
        use UpstreamError::{Connect, Full, NoServer, NoUpgrade, Timeout};
        matches!(self, NoServer | Full | Connect(_) | NoUpgrade | Timeout(UpstreamStep::Connect))
    }

    /// True if the gateway did not even try to send the request: what stands behind it is spared.
    pub(crate) fn is_unasked(&self) -> bool {
        use UpstreamError::{BreakerOpen, Full, NoServer, Shed};
        matches!(self, NoServer | Full | Shed(_) | BreakerOpen)
    }

    /// The label in metrics and the access log.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            UpstreamError::NoServer => "no_server",
            UpstreamError::Full => "full",
            UpstreamError::Shed(reason) => reason,
            UpstreamError::BreakerOpen => "breaker_open",
            UpstreamError::Connect(_) => "connect",
            UpstreamError::NoUpgrade => "no_upgrade",
            UpstreamError::Timeout(UpstreamStep::Connect) => "connect_timeout",
            UpstreamError::Timeout(UpstreamStep::FirstByte) => "first_byte_timeout",
            UpstreamError::Timeout(UpstreamStep::Total) => "total_timeout",
            UpstreamError::RequestBody(_) => "request_body",
            UpstreamError::TwoFramings => "two_framings",
            UpstreamError::UnaskedUpgrade => "unasked_upgrade",
            UpstreamError::Broken(_) => "broken",
        }
    }
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpstreamError::NoServer => f.write_str("no server is healthy"),
            UpstreamError::Shed(reason) => write!(f, "shed: {reason}"),
            UpstreamError::BreakerOpen => f.write_str("the circuit breaker is open"),
            UpstreamError::Full => f.write_str("too many requests are in flight"),
            UpstreamError::Connect(error) => write!(f, "cannot connect: {error}"),
            UpstreamError::NoUpgrade => f.write_str("the server speaks HTTP/2 alone, which has no upgrades"),
            UpstreamError::Timeout(UpstreamStep::Connect) => f.write_str("connecting took too long"),
            UpstreamError::Timeout(UpstreamStep::FirstByte) => f.write_str("the response did not begin in time"),
            UpstreamError::Timeout(UpstreamStep::Total) => f.write_str("the exchange took too long"),
            UpstreamError::RequestBody(error) => write!(f, "the request cannot be read: {error}"),
            UpstreamError::TwoFramings => f.write_str("it is not clear where the response ends"),
            UpstreamError::UnaskedUpgrade => f.write_str("the server switched to a protocol that was not asked for"),
            UpstreamError::Broken(error) => match error.source() {
                Some(cause) => write!(f, "{error}: {cause}"),
                None => write!(f, "{error}"),
            },
        }
    }
}
