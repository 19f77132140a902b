//! The environment variables of envoyproxy/ratelimit, translated into settings: for `tollgate envoy-compat`.

mod address;
mod duration;
mod environment;
mod translate;
mod variables;

pub use translate::{TranslatedSettings, translate};
