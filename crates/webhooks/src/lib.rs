//! Webhooks: events of a fleet, sent to URLs.
//!
//! An event that a node notices waits in a bounded queue ([`EventQueue`](tollgate_service::EventQueue)). The dispatcher
//! writes it into the database, one row per webhook, where its occurrence is unique: two nodes that notice the same write
//! it once. Then a node claims the row, sends it, and writes how that ended; it is tried again with growing pauses, and
//! given up after hours. What was sent, and how it ended, stays readable for a week.
//!
//! Messages are signed as [Standard Webhooks](https://www.standardwebhooks.com) has it, so that receivers can use its
//! libraries. Secrets are derived from the key of the site and the id of the webhook, and stored nowhere.

mod dispatcher;
mod message;
mod metrics;
mod policy;
mod secret;
mod webhooks;

pub use dispatcher::{WebhookDispatcher, WebhookDispatcherConfig};
pub use metrics::WebhookMetrics;
pub use policy::{UrlRefusal, WebhookPolicy};
pub use secret::WebhookSecret;
pub use webhooks::Webhooks;
