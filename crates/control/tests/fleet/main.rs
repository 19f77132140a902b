//! What the nodes of a fleet share besides rules: API keys, tokens, the mode, usage of quotas, violations.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

#[path = "../databases/mod.rs"]
mod databases;

mod api_keys;
mod mode;
mod tokens;
mod usage;
mod violations;
mod webhooks;
