//! The subjects that `--store` can name.

use std::fmt;

use crate::reference::Reference;
use crate::subject::{InMemory, InRedis, Subject};

/// A kind of subject, as `--store` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectKind {
    /// [`tollgate_store::Memory`] on a manual clock.
    Memory,
    /// [`Reference`]: the model of a store.
    Reference,
    /// [`InRedis`]: the server at this port of this machine.
    Redis(u16),
}

impl SubjectKind {
    /// The default of `--store`.
    pub const DEFAULT: SubjectKind = SubjectKind::Memory;

    /// Every store that needs no server.
    pub const ALL: [SubjectKind; 2] = [SubjectKind::Memory, SubjectKind::Reference];

    /// The name that chooses it.
    pub const fn name(self) -> &'static str {
        match self {
            SubjectKind::Memory => "memory",
            SubjectKind::Reference => "reference",
            SubjectKind::Redis(_) => "redis://127.0.0.1:PORT",
        }
    }

    /// The store behind a name or URL.
    pub fn from_url(url: &str) -> Result<SubjectKind, UnknownStore> {
        let unknown = || UnknownStore(url.to_owned());
        let address = url.strip_prefix("redis://").map(|rest| rest.trim_end_matches('/'));
        match address.and_then(|address| address.split_once(':')) {
            Some(("127.0.0.1" | "localhost", port)) => port.parse().map(SubjectKind::Redis).map_err(|_| unknown()),
            Some(_) => Err(unknown()),
            None => SubjectKind::ALL.into_iter().find(|store| store.name() == url).ok_or_else(unknown),
        }
    }

    /// A subject without any bucket.
    pub fn open(self) -> Box<dyn Subject> {
        match self {
            SubjectKind::Memory => Box::new(InMemory::default()),
            SubjectKind::Reference => Box::new(Reference::default()),
            SubjectKind::Redis(port) => Box::new(InRedis::connect(port)),
        }
    }
}

/// No subject has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownStore(String);

impl fmt::Display for UnknownStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = SubjectKind::ALL.into_iter().chain([SubjectKind::Redis(0)]).map(SubjectKind::name);
        let known: Vec<&str> = known.collect();
        write!(f, "unknown store {:?}; known are: {}", self.0, known.join(", "))
    }
}

impl std::error::Error for UnknownStore {}
