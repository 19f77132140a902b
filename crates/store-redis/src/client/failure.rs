//! What went wrong, and what may be done about it: the one table of what is sent again.
//!
//! A charge is sent at most once. Only replies that prove that nothing was executed allow to send it again; whatever
//! else happens (no reply in time, a closed connection, a reply nobody understands) leaves open whether it was charged,
//! so it is never sent again and the caller decides without the store.

use std::fmt;

use tollgate_resp::RespValue;
use tollgate_store::{StoreError, StoreErrorKind};

use super::address::HostPort;
use super::slot::SLOTS;

/// What a server says no with: the first word of its error. The rest of the text differs from server to server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// `NOSCRIPT`: it does not know the script (any more).
    NoScript,
    /// `MOVED`: another server has the slot.
    Moved,
    /// `ASK`: another server has this key of the slot already.
    Ask,
    /// `TRYAGAIN`: the slot is just moving.
    TryAgain,
    /// `CLUSTERDOWN`: slots without a server.
    ClusterDown,
    /// `READONLY`: it is a replica.
    ReadOnly,
    /// `LOADING`: it is reading its data.
    Loading,
    /// `MASTERDOWN`: a replica without its primary.
    MasterDown,
    /// `BUSY`: somebody's script does not end.
    Busy,
    /// `NOREPLICAS`: too few replicas to accept writes.
    NoReplicas,
    /// `OOM`: its memory is full.
    OutOfMemory,
    /// `NOAUTH`: it wants a password.
    NoAuth,
    /// `WRONGPASS`: it wants another one.
    WrongPass,
    /// `NOPERM`: the user may not do this.
    NoPerm,
    /// `ERR max number of clients reached`: the one refusal without a word of its own.
    MaxClients,
    /// Not a word of the server: our script found something that is not a bucket under a key of ours, and wrote nothing.
    Foreign,
    /// Anything else.
    Other,
}

/// What follows from a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Nothing was executed: send the script's text once, on the same connection.
    Reload,
    /// Nothing was executed: the layer above knows, or finds out, who has the slot.
    Redirect,
    /// Nothing was executed: try once more, shortly.
    Again,
    /// Nothing was executed, and trying again will not help now.
    GiveUp(StoreErrorKind),
    /// It may have been executed: never send it again.
    Unknown,
}

impl Treatment {
    /// What it is to whoever asked, if it is over.
    pub const fn kind(self) -> Option<StoreErrorKind> {
        match self {
            Treatment::GiveUp(kind) => Some(kind),
            Treatment::Unknown => Some(StoreErrorKind::Indeterminate),
            Treatment::Reload | Treatment::Redirect | Treatment::Again => None,
        }
    }
}

impl Refusal {
    /// All of them, in the order of their places in figures.
    pub const ALL: [Refusal; 17] = [
        Refusal::NoScript,
        Refusal::Moved,
        Refusal::Ask,
        Refusal::TryAgain,
        Refusal::ClusterDown,
        Refusal::ReadOnly,
        Refusal::Loading,
        Refusal::MasterDown,
        Refusal::Busy,
        Refusal::NoReplicas,
        Refusal::OutOfMemory,
        Refusal::NoAuth,
        Refusal::WrongPass,
        Refusal::NoPerm,
        Refusal::MaxClients,
        Refusal::Foreign,
        Refusal::Other,
    ];

    /// The refusal in a reply, if it is one.
    pub fn of(reply: &RespValue) -> Option<Refusal> {
        let RespValue::Error(text) = reply else { return None };
        Some(match reply.error_word()? {
            b"NOSCRIPT" => Refusal::NoScript,
            b"MOVED" => Refusal::Moved,
            b"ASK" => Refusal::Ask,
            b"TRYAGAIN" => Refusal::TryAgain,
            b"CLUSTERDOWN" => Refusal::ClusterDown,
            b"READONLY" => Refusal::ReadOnly,
            b"LOADING" => Refusal::Loading,
            b"MASTERDOWN" => Refusal::MasterDown,
            b"BUSY" => Refusal::Busy,
            b"NOREPLICAS" => Refusal::NoReplicas,
            b"OOM" => Refusal::OutOfMemory,
            b"NOAUTH" => Refusal::NoAuth,
            b"WRONGPASS" => Refusal::WrongPass,
            b"NOPERM" => Refusal::NoPerm,
            b"ERR" if text.starts_with(b"ERR max number of clients reached") => Refusal::MaxClients,
            _ => Refusal::Other,
        })
    }

    /// What may be done.
    pub const fn treatment(self) -> Treatment {
        match self {
            Refusal::NoScript => Treatment::Reload,
            Refusal::Moved | Refusal::Ask | Refusal::ReadOnly | Refusal::ClusterDown => Treatment::Redirect,
            Refusal::TryAgain => Treatment::Again,
            Refusal::Loading | Refusal::MasterDown | Refusal::Busy => Treatment::GiveUp(StoreErrorKind::Unavailable),
            Refusal::NoReplicas | Refusal::OutOfMemory => Treatment::GiveUp(StoreErrorKind::Refused),
            Refusal::NoAuth | Refusal::WrongPass | Refusal::NoPerm => Treatment::GiveUp(StoreErrorKind::Refused),
            Refusal::MaxClients => Treatment::GiveUp(StoreErrorKind::Saturated),
            Refusal::Foreign => Treatment::GiveUp(StoreErrorKind::Refused),
            Refusal::Other => Treatment::Unknown,
        }
    }

    /// True if it says something about the server's health: redirections are healthy answers.
    pub const fn is_failure(self) -> bool {
        use Refusal::{Ask, Foreign, Moved, NoScript, TryAgain};
        !matches!(self, NoScript | Moved | Ask | TryAgain | Foreign)
    }

    /// Its name in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::NoScript => "noscript",
            Refusal::Moved => "moved",
            Refusal::Ask => "ask",
            Refusal::TryAgain => "tryagain",
            Refusal::ClusterDown => "clusterdown",
            Refusal::ReadOnly => "readonly",
            Refusal::Loading => "loading",
            Refusal::MasterDown => "masterdown",
            Refusal::Busy => "busy",
            Refusal::NoReplicas => "noreplicas",
            Refusal::OutOfMemory => "oom",
            Refusal::NoAuth => "noauth",
            Refusal::WrongPass => "wrongpass",
            Refusal::NoPerm => "noperm",
            Refusal::MaxClients => "maxclients",
            Refusal::Foreign => "foreign",
            Refusal::Other => "other",
        }
    }

    /// What it means, for people.
    pub const fn meaning(self) -> &'static str {
        match self {
            Refusal::NoScript => "the server keeps forgetting the script",
            Refusal::Moved => "another server has the slot",
            Refusal::Ask => "another server has the key already",
            Refusal::TryAgain => "the slot is just moving",
            Refusal::ClusterDown => "the cluster has slots without a server",
            Refusal::ReadOnly => "the server is a replica",
            Refusal::Loading => "the server is still reading its data",
            Refusal::MasterDown => "the server is a replica without its primary",
            Refusal::Busy => "the server is busy with somebody's script",
            Refusal::NoReplicas => "the server has too few replicas to accept writes",
            Refusal::OutOfMemory => "the server's memory is full",
            Refusal::NoAuth => "the server wants a password",
            Refusal::WrongPass => "the server does not accept user or password",
            Refusal::NoPerm => "the user lacks a right (ACL)",
            Refusal::MaxClients => "the server has as many clients as it may",
            Refusal::Foreign => "a key of ours holds something that is not a bucket",
            Refusal::Other => "the server answered with an error",
        }
    }

    /// Its place in [`Refusal::ALL`].
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// Why something asked of a primary was not done, and what was asked, if it may be asked elsewhere.
#[derive(Debug)]
pub enum Failure<W = ()> {
    /// It is over.
    Store(StoreError),
    /// Nothing was executed, and another server, or this one later, may do it.
    Redirected(Box<Redirected<W>>),
}

/// Work that another server may do.
#[derive(Debug)]
pub struct Redirected<W> {
    /// Who, as far as the server told.
    pub redirect: Redirect,
    /// What was asked, given back.
    pub work: W,
}

/// Who may do what this server did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// From now on, this server has the slot.
    Moved {
        /// The slot.
        slot: u16,
        /// Its new place.
        to: HostPort,
    },
    /// For this one call, that server has the key; it must be asked with `asking`.
    Ask {
        /// The slot.
        slot: u16,
        /// Where to ask.
        to: HostPort,
    },
    /// This server is a replica now: find the primary.
    ReadOnly,
    /// The cluster is down, or this server is cut off from it.
    ClusterDown,
}

impl Redirect {
    /// Reads a redirection; `answered` is the host that sent it.
    pub(crate) fn of(refusal: Refusal, reply: &RespValue, answered: &str) -> Option<Redirect> {
        match refusal {
            Refusal::ReadOnly => return Some(Redirect::ReadOnly),
            Refusal::ClusterDown => return Some(Redirect::ClusterDown),
            _ => {}
        }
        let RespValue::Error(text) = reply else { return None };
        let mut words = std::str::from_utf8(text).ok()?.split(' ').skip(1);
        let slot = words.next()?.parse().ok().filter(|slot| *slot < SLOTS)?;
        let to = HostPort::from_redirect(words.next()?, answered)?;
        match refusal {
            Refusal::Moved => Some(Redirect::Moved { slot, to }),
            Refusal::Ask => Some(Redirect::Ask { slot, to }),
            _ => None,
        }
    }
}

impl<W> Failure<W> {
    /// The failure as the store's own error, for those who cannot ask elsewhere.
    pub fn into_error(self) -> StoreError {
        match self {
            Failure::Store(error) => error,
            Failure::Redirected(redirected) => error(StoreErrorKind::Unavailable, redirected.redirect.to_string()),
        }
    }

    /// The same failure without the work.
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
            Redirect::ReadOnly => f.write_str(Refusal::ReadOnly.meaning()),
            Redirect::ClusterDown => f.write_str(Refusal::ClusterDown.meaning()),
        }
    }
}

/// What an error says, for people: what it means, and its word where only that tells.
pub(crate) fn meaning_of(refusal: Refusal, reply: &RespValue) -> String {
    let word = reply.error_word().unwrap_or_default();
    // Nothing but a word: the text behind it may repeat what was sent.
    let is_word = !word.is_empty() && word.len() <= 20 && word.iter().all(u8::is_ascii_uppercase);
    match (refusal, is_word) {
        (Refusal::Other, true) => format!("{} ({})", refusal.meaning(), String::from_utf8_lossy(word)),
        _ => refusal.meaning().to_owned(),
    }
}

/// An error of the store.
pub(crate) fn error(kind: StoreErrorKind, detail: impl Into<String>) -> StoreError {
    StoreError { kind, detail: detail.into() }
}

#[cfg(test)]
mod tests;
