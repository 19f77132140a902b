//! The URL of a store.
//!
//! | scheme | means | with TLS |
//! |---|---|---|
//! | `redis://[[user]:password@]host[:port][/db]` | one server | `rediss://` |
//! | `redis-sentinel://[user:password@]host[:port],…/master` | the primary that these Sentinels name | `redis-sentinels://` |
//! | `redis-cluster://[user:password@]host[:port],…` | a cluster that these nodes belong to | `redis-clusters://` |
//!
//! `valkey` may stand wherever `redis` does. Ports default to 6379, those of Sentinels to 26379. User and password are
//! for the servers, percent-encoded where they hold `@ : / ? # %`. Parameters: `db` (not in a cluster),
//! `sentinel_user` and `sentinel_password` for Sentinels that want their own.

mod parse;
mod store_url;

pub use parse::UrlError;
pub use store_url::{Layout, Login, StoreUrl};

#[cfg(test)]
mod tests;
