//! Where rules come from: a file, read with care and followed while the server runs, and a database beside it.
//!
//! [`Source`] reads and compiles one file, [`Directory`] the files of envoyproxy/ratelimit; a [`Reloader`] follows either
//! and hands everything new and valid to the [`RulePublisher`], which puts all rules together and into force.
//! What does not read or compile never replaces what does.

mod directory;
mod file;
mod listed;
mod metrics;
mod numbers;
mod publisher;
mod reloader;
mod state;
mod watch;
mod watched;

pub use directory::{Directory, EnvoyDomains, FILES_MAX};
pub use file::{BYTES_MAX, Loaded, RuleSourceError, Source, Unreadable, Written};
pub use metrics::FileStates;
pub use publisher::RulePublisher;
pub use reloader::{Apply, Reloader, WatchConfig};
pub use state::RuleSourceState;
pub use watch::Pace;
pub use watched::{Content, Fingerprint, Mark, Stamp, Watched};
