//! Errors of servers, and which of them allow to send a call again.
//!
//! A charge is sent at most once. Only a reply that proves that nothing was executed allows to send it again. After
//! anything else (no reply in time, a closed connection, an unknown error) the charge may have been recorded: it is
//! never sent again, and the caller decides without the store.

use std::fmt;

use tollgate_resp::RespValue;
use tollgate_store::{StoreError, StoreErrorKind};

use super::address::HostPort;
use super::slot::SLOTS;

/// An error of a server, by the first word of its text. The rest of the text differs between servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// `NOSCRIPT`: the server does not know the script (any more).
    NoScript,
    /// `MOVED`: another server serves the slot.
    Moved,
    /// `ASK`: the slot is migrating, and another server has this key already.
    Ask,
    /// `TRYAGAIN`: the slot is migrating, and the keys of the call are split.
    TryAgain,
    /// `CLUSTERDOWN`: some slots are not served.
    ClusterDown,
    /// `READONLY`: the server is a replica.
    ReadOnly,
    /// `LOADING`: the server is loading its data.
    Loading,
    /// `MASTERDOWN`: a replica that lost its primary.
    MasterDown,
    /// `BUSY`: a script has been running for too long.
    Busy,
    /// `NOREPLICAS`: too few replicas to accept writes.
    NoReplicas,
    /// `OOM`: the server's memory is full.
    OutOfMemory,
    /// `NOAUTH`: the server requires a password.
    NoAuth,
    /// `WRONGPASS`: wrong user or password.
    WrongPass,
    /// `NOPERM`: the user lacks a permission.
    NoPerm,
    /// `ERR max number of clients reached`: the only one here without a code of its own.
    MaxClients,
    /// Not an error of the server: a script found a value under one of our keys that is not a bucket, and wrote
    /// nothing.
    Foreign,
    /// Any other error.
    Other,
}

/// What an error allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Nothing was executed: send the script's text once, on the same connection.
    Reload,
    /// Nothing was executed: another server serves the slot.
    Redirect,
    /// Nothing was executed: try again once, after a short pause.
    Again,
    /// Nothing was executed, and trying again now does not help.
    GiveUp(StoreErrorKind),
    /// The call may have been executed: never send it again.
    Unknown,
}

impl Treatment {
    /// The kind of error that callers receive; `None` if the call can be sent again.
    pub const fn kind(self) -> Option<StoreErrorKind> {
        match self {
            Treatment::GiveUp(kind) => Some(kind),
            Treatment::Unknown => Some(StoreErrorKind::Indeterminate),
            Treatment::Reload | Treatment::Redirect | Treatment::Again => None,
        }
    }
}

impl ErrorCode {
    /// All codes, in the order of their counters.
    pub const ALL: [ErrorCode; 17] = [
        ErrorCode::NoScript,
        ErrorCode::Moved,
        ErrorCode::Ask,
        ErrorCode::TryAgain,
        ErrorCode::ClusterDown,
        ErrorCode::ReadOnly,
        ErrorCode::Loading,
        ErrorCode::MasterDown,
        ErrorCode::Busy,
        ErrorCode::NoReplicas,
        ErrorCode::OutOfMemory,
        ErrorCode::NoAuth,
        ErrorCode::WrongPass,
        ErrorCode::NoPerm,
        ErrorCode::MaxClients,
        ErrorCode::Foreign,
        ErrorCode::Other,
    ];

    /// The code of a reply, if the reply is an error.
    pub fn of(reply: &RespValue) -> Option<ErrorCode> {
        let RespValue::Error(text) = reply else { return None };
        Some(match reply.error_word()? {
            b"NOSCRIPT" => ErrorCode::NoScript,
            b"MOVED" => ErrorCode::Moved,
            b"ASK" => ErrorCode::Ask,
            b"TRYAGAIN" => ErrorCode::TryAgain,
            b"CLUSTERDOWN" => ErrorCode::ClusterDown,
            b"READONLY" => ErrorCode::ReadOnly,
            b"LOADING" => ErrorCode::Loading,
            b"MASTERDOWN" => ErrorCode::MasterDown,
            b"BUSY" => ErrorCode::Busy,
            b"NOREPLICAS" => ErrorCode::NoReplicas,
            b"OOM" => ErrorCode::OutOfMemory,
            b"NOAUTH" => ErrorCode::NoAuth,
            b"WRONGPASS" => ErrorCode::WrongPass,
            b"NOPERM" => ErrorCode::NoPerm,
            b"ERR" if text.starts_with(b"ERR max number of clients reached") => ErrorCode::MaxClients,
            _ => ErrorCode::Other,
        })
    }

    /// What it allows.
    pub const fn treatment(self) -> Treatment {
        match self {
            ErrorCode::NoScript => Treatment::Reload,
            ErrorCode::Moved | ErrorCode::Ask | ErrorCode::ReadOnly | ErrorCode::ClusterDown => Treatment::Redirect,
            ErrorCode::TryAgain => Treatment::Again,
            ErrorCode::Loading | ErrorCode::MasterDown | ErrorCode::Busy => {
                Treatment::GiveUp(StoreErrorKind::Unavailable)
            }
            ErrorCode::NoReplicas | ErrorCode::OutOfMemory => Treatment::GiveUp(StoreErrorKind::Refused),
            ErrorCode::NoAuth | ErrorCode::WrongPass | ErrorCode::NoPerm => Treatment::GiveUp(StoreErrorKind::Refused),
            ErrorCode::MaxClients => Treatment::GiveUp(StoreErrorKind::Saturated),
            ErrorCode::Foreign => Treatment::GiveUp(StoreErrorKind::Refused),
            ErrorCode::Other => Treatment::Unknown,
        }
    }

    /// True if it counts as a failure of the server. A redirection proves that the server is healthy.
    pub const fn is_failure(self) -> bool {
        use ErrorCode::{Ask, Foreign, Moved, NoScript, TryAgain};
        !matches!(self, NoScript | Moved | Ask | TryAgain | Foreign)
    }

    /// Its label in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            ErrorCode::NoScript => "noscript",
            ErrorCode::Moved => "moved",
            ErrorCode::Ask => "ask",
            ErrorCode::TryAgain => "tryagain",
            ErrorCode::ClusterDown => "clusterdown",
            ErrorCode::ReadOnly => "readonly",
            ErrorCode::Loading => "loading",
            ErrorCode::MasterDown => "masterdown",
            ErrorCode::Busy => "busy",
            ErrorCode::NoReplicas => "noreplicas",
            ErrorCode::OutOfMemory => "oom",
            ErrorCode::NoAuth => "noauth",
            ErrorCode::WrongPass => "wrongpass",
            ErrorCode::NoPerm => "noperm",
            ErrorCode::MaxClients => "maxclients",
            ErrorCode::Foreign => "foreign",
            ErrorCode::Other => "other",
        }
    }

    /// What it means, in words.
    pub const fn meaning(self) -> &'static str {
        match self {
            ErrorCode::NoScript => "the server keeps forgetting the script",
            ErrorCode::Moved => "another server has the slot",
            ErrorCode::Ask => "another server has the key already",
            ErrorCode::TryAgain => "the slot is migrating",
            ErrorCode::ClusterDown => "the cluster has slots without a server",
            ErrorCode::ReadOnly => "the server is a replica",
            ErrorCode::Loading => "the server is still reading its data",
            ErrorCode::MasterDown => "the server is a replica without its primary",
            ErrorCode::Busy => "the server is busy running a script",
            ErrorCode::NoReplicas => "the server has too few replicas to accept writes",
            ErrorCode::OutOfMemory => "the server's memory is full",
            ErrorCode::NoAuth => "the server requires a password",
            ErrorCode::WrongPass => "the server does not accept user or password",
            ErrorCode::NoPerm => "the user lacks a right (ACL)",
            ErrorCode::MaxClients => "the server has reached its maximum number of clients",
            ErrorCode::Foreign => "a key of ours holds something that is not a bucket",
            ErrorCode::Other => "the server answered with an error",
        }
    }

    /// Its index in [`ErrorCode::ALL`].
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// Why a primary did not execute a call.
#[derive(Debug)]
pub enum Failure<W = ()> {
    /// The call failed.
    Store(StoreError),
    /// Nothing was executed; another server, or this one later, may execute it.
    Redirected(Box<Redirected<W>>),
}

/// A call that was not executed and may be sent to another server.
#[derive(Debug)]
pub struct Redirected<W> {
    /// Where to, as far as the server said.
    pub redirect: Redirect,
    /// The call.
    pub work: W,
}

/// Which server may execute a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// This server serves the slot from now on.
    Moved {
        /// The slot.
        slot: u16,
        /// The server.
        to: HostPort,
    },
    /// For this call only, that server has the key; send it with `ASKING`.
    Ask {
        /// The slot.
        slot: u16,
        /// The server.
        to: HostPort,
    },
    /// The server is a replica now: find the primary.
    ReadOnly,
    /// The cluster is down, or the server is cut off from it.
    ClusterDown,
}

impl Redirect {
    /// Parses a redirection; `answered` is the host that sent it.
    pub(crate) fn of(code: ErrorCode, reply: &RespValue, answered: &str) -> Option<Redirect> {
        match code {
            ErrorCode::ReadOnly => return Some(Redirect::ReadOnly),
            ErrorCode::ClusterDown => return Some(Redirect::ClusterDown),
            _ => {}
        }
        let RespValue::Error(text) = reply else { return None };
        let mut words = std::str::from_utf8(text).ok()?.split(' ').skip(1);
        let slot = words.next()?.parse().ok().filter(|slot| *slot < SLOTS)?;
        let to = HostPort::from_redirect(words.next()?, answered)?;
        match code {
            ErrorCode::Moved => Some(Redirect::Moved { slot, to }),
            ErrorCode::Ask => Some(Redirect::Ask { slot, to }),
            _ => None,
        }
    }
}

impl<W> Failure<W> {
    /// As an error of the store, for callers that cannot follow redirections.
    pub fn into_error(self) -> StoreError {
        match self {
            Failure::Store(error) => error,
            Failure::Redirected(redirected) => error(StoreErrorKind::Unavailable, redirected.redirect.to_string()),
        }
    }

    /// Without the call.
    pub fn without_work(self) -> Failure {
        match self {
            Failure::Store(error) => Failure::Store(error),
            Failure::Redirected(redirected) => {
                Failure::Redirected(Box::new(Redirected { redirect: redirected.redirect, work: () }))
            }
        }
    }
}

impl fmt::Display for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Redirect::Moved { slot, to } => write!(f, "slot {slot} has moved to {to}"),
            Redirect::Ask { slot, to } => write!(f, "slot {slot} is moving to {to}"),
            Redirect::ReadOnly => f.write_str(ErrorCode::ReadOnly.meaning()),
            Redirect::ClusterDown => f.write_str(ErrorCode::ClusterDown.meaning()),
        }
    }
}

/// An error in words: its meaning, and its code if it is unknown.
pub(crate) fn meaning_of(code: ErrorCode, reply: &RespValue) -> String {
    let word = reply.error_word().unwrap_or_default();
    // The code only: the text behind it may repeat the request.
    let is_word = !word.is_empty() && word.len() <= 20 && word.iter().all(u8::is_ascii_uppercase);
    match (code, is_word) {
        (ErrorCode::Other, true) => format!("{} ({})", code.meaning(), String::from_utf8_lossy(word)),
        _ => code.meaning().to_owned(),
    }
}

/// An error of the store.
pub(crate) fn error(kind: StoreErrorKind, detail: impl Into<String>) -> StoreError {
    StoreError { kind, detail: detail.into() }
}

#[cfg(test)]
mod tests;
