//! The server: a configuration becomes listeners, rule sources and a control plane. Wiring only.
//!
//! | file | what |
//! |---|---|
//! | `run` | opens, runs and ends a server |
//! | `parts` | builds everything that lives before a listener: engine, service, metrics, rule sources |
//! | `listeners` | binds addresses and puts a transport behind each |
//! | `store` | opens the store that the configuration names |
//! | [`rule_sources`] | rules files, Envoy's files and the database, published as one rule set |
//! | `control_plane` | the database, admin tokens and the kill switch |
//! | `gateway` | the gateway's routes and identities |
//! | `quota_journal` | usage of quotas that survives a restart |
//! | `families` | metrics of rule sources and database |
//! | `upkeep` | periodic work: certificates, tokens, leases, comparison with other nodes |

mod control_plane;
mod families;
mod gateway;
mod listeners;
mod otlp;
mod parts;
mod quota_journal;
pub mod rule_sources;
pub mod run;
mod signal_watch;
mod signals;
mod startup_banner;
mod store;
mod surface;
mod upkeep;
mod webhooks;

pub use control_plane::with_password;
pub use store::redis_config;
pub use surface::Surface;
