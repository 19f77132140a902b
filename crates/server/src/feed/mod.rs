//! Where rules come from: a file, read with care and followed while the server runs, and a database beside it.
//!
//! [`Source`] reads and compiles one file; [`Reloader`] follows it and hands every new valid rule set to the engine.
//! What does not read or compile never replaces what does.

mod assembly;
mod file;
mod reloader;
mod state;
mod watch;

pub use assembly::Assembly;
pub use file::{BYTES_MAX, FeedError, Loaded, Mark, Source, Unreadable, Written};
pub use reloader::{Apply, Following, Reloader};
pub use state::FeedState;
pub use watch::Pace;
