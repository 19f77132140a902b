//! The sources of rules: a rules file, the files of envoyproxy/ratelimit, and the database.
//!
//! [`RulesFileSource`] reads and compiles one rules file, [`EnvoyDirectory`] the files of envoyproxy/ratelimit. A [`Reloader`]
//! watches either and passes valid changes to the [`RulePublisher`], which combines the rules of all sources and
//! activates them. Invalid content never replaces the active rules.

mod directory;
mod error;
mod file;
mod generation_numbers;
mod limits;
mod listed;
mod metrics;
mod plans;
mod publisher;
mod reloader;
mod rule_source;
mod state;
mod watch;
mod watch_config;

pub use directory::{EnvoyDirectory, EnvoyDomains};
pub use error::{RuleSourceError, Unreadable};
pub use file::{LoadedRulesFile, RulesFileSource, Written};
pub use limits::{BYTES_MAX, FILES_MAX};
pub use metrics::FileStates;
pub use publisher::RulePublisher;
pub use reloader::Reloader;
pub use rule_source::{ContentFingerprint, ContentMark, FileStamp, RuleSource, SourceContent};
pub use state::RuleSourceState;
pub use watch_config::{Apply, Pace, WatchConfig};
