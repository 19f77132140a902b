//! One configuration for the server, from flags, environment, file and defaults, in this order.
//!
//! Every setting is one entry of [`SETTINGS`]: its name, its kind, its bounds, its help. From this table come the flags
//! of the command line, the environment variables, the keys of the file, the output of `tollgate config` and the
//! reference page; defaults are those of [`Config::default`]. [`Sources::resolve`] is the only way from text to
//! [`Config`], and it records the source of each value.
//!
//! A struct read by serde would be shorter, but would know neither the position of an error nor the source of a value.
//! There are no nested sections, because they have no spelling as a flag.

mod answer;
mod auth;
mod bytes;
mod check;
mod choice;
mod config;
mod control;
mod effective;
mod envoy;
mod error;
mod file;
mod gateway;
mod grpc;
mod origin;
mod parse;
pub mod ratelimit_env;
mod reference;
mod resp;
mod setting;
mod settings;
mod signals;
mod sources;
mod store;

pub use answer::{AnswerSettings, HEADER_STYLES};
pub use auth::{AuthSettings, FromHeader};
pub use choice::{AuthSource, Durability, LogFormat, LogLevel, RefusalDetail, SettingChoice};
pub use config::Config;
pub use control::{ControlSettings, DbPlace};
pub use effective::{Resolved, UnknownVariable, template};
pub use envoy::EnvoySettings;
pub use error::{ConfigError, Mistake};
pub use file::FILE_BYTES_MAX;
pub use gateway::{AccessFormat, GatewaySettings};
pub use grpc::GrpcSettings;
pub use origin::SettingOrigin;
pub use reference::reference;
pub use resp::{RespRounding, RespSettings};
pub use setting::{Section, Setting, SettingKind};
pub use settings::{SETTINGS, SettingTable};
pub use signals::SignalSettings;
pub use sources::Sources;
pub use store::{StorePlace, StoreSettings};

#[cfg(test)]
mod tests;
