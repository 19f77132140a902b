//! Settings of gRPC.

use std::time::Duration;

use tollgate_net::Address;

/// Settings of the gRPC listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcSettings {
    /// The address of Tollgate's own service and Envoy's; `None` for no listener.
    pub address: Option<Address>,
    /// Whether callers may ask which services there are.
    pub reflection: bool,
    /// The age at which a connection is closed gracefully: callers that stay connected for days would never find added
    /// servers. A tenth more or less, so that they do not all reconnect at once.
    pub max_connection_age: Duration,
}

impl Default for GrpcSettings {
    fn default() -> Self {
        GrpcSettings { address: None, reflection: false, max_connection_age: Duration::from_secs(15 * 60) }
    }
}
