//! Buckets in Redis: keys, scripts, the store that nodes use, and what operators ask about it.

pub(crate) mod budget;
pub(crate) mod change_listener;
pub mod check;
pub(crate) mod fingerprint;
pub mod inspect;
pub mod key;
pub(crate) mod lifecycle;
pub(crate) mod node_messages;
pub(crate) mod node_reports;
pub(crate) mod node_rules;
pub mod primary;
pub(crate) mod redis_store;
pub mod script;
pub mod stats;
