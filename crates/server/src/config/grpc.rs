//! gRPC, as it was configured.

use crate::net::Address;

/// Settings of the gRPC listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrpcSettings {
    /// Where gRPC is served: Tollgate's own service and Envoy's; nowhere if none.
    pub address: Option<Address>,
    /// Whether callers may ask which services there are.
    pub reflection: bool,
}
