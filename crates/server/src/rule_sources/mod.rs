//! Where rules come from: a file, read with care and followed while the server runs, and a database beside it.
//!
//! [`Source`] reads and compiles one file, [`Directory`] the files of envoyproxy/ratelimit; a [`Reloader`] follows either
//! and hands everything new and valid to the [`RulePublisher`], which puts all rules together and into force.
//! What does not read or compile never replaces what does.

mod directory;
mod error;
mod file;
mod limits;
mod listed;
mod metrics;
mod numbers;
mod publisher;
mod reloader;
mod state;
mod watch;
mod watch_config;
mod watched;

pub use directory::{Directory, EnvoyDomains};
pub use error::{RuleSourceError, Unreadable};
pub use file::{Loaded, Source, Written};
pub use limits::{BYTES_MAX, FILES_MAX};
pub use metrics::FileStates;
pub use publisher::RulePublisher;
pub use reloader::Reloader;
pub use state::RuleSourceState;
pub use watch_config::{Apply, Pace, WatchConfig};
pub use watched::{Content, Fingerprint, Mark, Stamp, Watched};
