//! One file per command: its flags, its help, its code.

pub mod audit;
pub mod bench;
pub mod check;
pub mod clients;
pub mod completions;
pub mod config;
pub mod db;
pub mod envoy_compat;
pub mod explain;
pub mod gateway;
pub mod grants;
pub mod keys;
pub mod man;
pub mod measure;
pub mod mode;
pub mod namespaces;
pub mod overrides;
pub mod plans;
pub mod rules;
pub mod serve;
pub mod status;
pub mod store;
pub mod tokens;
pub mod usage;
pub mod violations;
pub mod webhooks;
