//! Where rules come from: a file, read with care and followed while the server runs, and a database beside it.
//!
//! [`Source`] reads and compiles one file, [`Directory`] the files of envoyproxy/ratelimit; a [`Reloader`] follows either
//! and hands everything new and valid to the [`RulePublisher`], which puts all rules together and into force.
//! What does not read or compile never replaces what does.

mod directory;
mod error;
mod file;
mod generation_numbers;
mod limits;
mod listed;
mod metrics;
mod publisher;
mod reloader;
mod rule_source;
mod state;
mod watch;
mod watch_config;

pub use directory::{Directory, EnvoyDomains};
pub use error::{RuleSourceError, Unreadable};
pub use file::{LoadedRulesFile, Source, Written};
pub use limits::{BYTES_MAX, FILES_MAX};
pub use metrics::FileStates;
pub use publisher::RulePublisher;
pub use reloader::Reloader;
pub use rule_source::{ContentFingerprint, ContentMark, FileStamp, RuleSource, SourceContent};
pub use state::RuleSourceState;
pub use watch_config::{Apply, Pace, WatchConfig};
