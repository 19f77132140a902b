//! Settings of the gateway.

use std::path::PathBuf;

use tollgate_net::Address;
use tollgate_rules::address::Cidr;

use crate::choice::{SettingChoice, choice};

choice! {
    /// How lines of the access log are written.
    AccessFormat {
        /// One JSON object per line.
        Json = "json",
        /// As Apache and nginx write it.
        Combined = "combined",
    }
}

/// Settings of the gateway, the reverse proxy in front of an API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewaySettings {
    /// Where it listens; nowhere if none.
    pub listen: Option<Address>,
    /// Load balancers whose connections begin with a PROXY header.
    pub proxy_protocol: Vec<Cidr>,
    /// Servers that get everything, as URLs.
    pub upstream: Vec<String>,
    /// The routes file, in place of `upstream`.
    pub routes: Option<PathBuf>,
    /// Whether requests that limits refuse are forwarded all the same.
    pub shadow: bool,
    /// Where requests are logged: a path, or `-` for standard output.
    pub access_log: Option<String>,
    /// How they are logged.
    pub access_log_format: AccessFormat,
    /// Of the forwarded ones, how many are logged, in percent.
    pub access_log_sample: usize,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        GatewaySettings {
            listen: None,
            proxy_protocol: Vec::new(),
            upstream: Vec::new(),
            routes: None,
            shadow: false,
            access_log: None,
            access_log_format: AccessFormat::Json,
            access_log_sample: 100,
        }
    }
}
