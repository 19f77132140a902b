//! Where rules come from: a file, read with care and followed while the server runs, and a database beside it.
//!
//! [`Source`] reads and compiles one file, [`Directory`] the files of envoyproxy/ratelimit; a [`Reloader`] follows either
//! and hands everything new and valid to the [`Assembly`], which puts all rules together and into force.
//! What does not read or compile never replaces what does.

mod assembly;
mod directory;
mod file;
mod listed;
mod numbers;
mod reloader;
mod state;
mod watch;
mod watched;

pub use assembly::Assembly;
pub use directory::{Directory, Domains, FILES_MAX};
pub use file::{BYTES_MAX, FeedError, Loaded, Source, Unreadable, Written};
pub use reloader::{Apply, Following, Reloader};
pub use state::FeedState;
pub use watch::Pace;
pub use watched::{Content, Fingerprint, Mark, Stamp, Watched};
