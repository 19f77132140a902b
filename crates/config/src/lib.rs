//! One configuration for the server, from flags, environment, file and defaults, in this order.
//!
//! Every setting is one entry of [`SETTINGS`]: its name, what it takes, its bounds, its help. From this table come the
//! flags of the command line, the environment variables, the keys of the file, what `tollgate config` prints and the
//! reference page; the default is whatever [`Config::default`] holds. [`Sources::resolve`] is the only way from text to
//! [`Config`], and it remembers where each value came from.
//!
//! A struct read by serde would have been shorter, and would know neither the place of a mistake nor the source of a
//! value; nested sections were left out because they have no spelling as a flag.

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
mod grpc;
mod origin;
mod parse;
mod reference;
mod resp;
mod setting;
mod settings;
mod sources;
mod store;

pub use answer::{AnswerSettings, HEADER_STYLES};
pub use auth::{AuthSettings, FromHeader};
pub use choice::{AuthSource, LogFormat, LogLevel, RefusalDetail, SettingChoice};
pub use config::Config;
pub use control::{ControlSettings, DbPlace};
pub use effective::{Resolved, UnknownVariable, template};
pub use envoy::EnvoySettings;
pub use error::{ConfigError, Mistake};
pub use file::FILE_BYTES_MAX;
pub use grpc::GrpcSettings;
pub use origin::SettingOrigin;
pub use reference::reference;
pub use resp::{RespRounding, RespSettings};
pub use setting::{Section, Setting, SettingKind};
pub use settings::{SETTINGS, SettingTable};
pub use sources::Sources;
pub use store::{StorePlace, StoreSettings};

#[cfg(test)]
mod tests;
