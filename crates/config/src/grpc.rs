//! gRPC, as it was configured.

use std::time::Duration;

use tollgate_net::Address;

/// Settings of the gRPC listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcSettings {
    /// Where gRPC is served: Tollgate's own service and Envoy's; nowhere if none.
    pub address: Option<Address>,
    /// Whether callers may ask which services there are.
    pub reflection: bool,
    /// How old a connection gets before its caller is asked to open another one: otherwise callers that stay connected
    /// for days never find the servers that were added. A tenth more or less, so that they do not all come at once.
    pub max_connection_age: Duration,
}

impl Default for GrpcSettings {
    fn default() -> Self {
        GrpcSettings { address: None, reflection: false, max_connection_age: Duration::from_secs(15 * 60) }
    }
}
