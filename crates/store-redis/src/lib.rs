//! Buckets in Redis or Valkey, shared by all nodes of a fleet.

pub mod key;
pub mod resp;
pub mod script;
