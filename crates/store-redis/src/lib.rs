//! Buckets in Redis or Valkey, shared by all nodes of a fleet.

mod client;
mod store;

pub use client::address::HostPort;
pub use client::config::RedisConfig;
pub use client::context::RedisContext;
pub use client::failure::{ErrorCode, Failure, Redirect};
pub use client::password::Password;
pub use client::url::{Layout, Login, StoreUrl};
pub use client::{breaker, clock, failure, url};
pub use store::change_listener::ChangeListener;
pub use store::check::{Finding, check};
pub use store::inspect::{BucketReader, BucketState, StoredBucket};
pub use store::lifecycle::{RedisStats, StartError};
pub use store::node_messages::{NodeAnswers, NodeChannels, NodeMessage, NodeMessages};
pub use store::node_reports::NodeReport;
pub use store::node_rules::NodeRules;
pub use store::primary::memory::MemoryLevel;
pub use store::primary::{Health, Primary};
pub use store::redis_store::RedisStore;
pub use store::stats::{PrimaryStats, SlotStats};
pub use store::{check, inspect, key, primary, script, stats};
