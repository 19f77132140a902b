//! Settings of what a server tells operators by itself: metrics and webhooks.

/// Settings of metrics and webhooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignalSettings {
    /// Whether names of metrics lack the prefix `tollgate_`.
    pub bare_metric_names: bool,
    /// Whether events are sent to the webhooks of the database.
    pub webhooks: bool,
    /// Hosts that webhooks may name; any if empty.
    pub webhook_hosts: Vec<String>,
    /// Whether webhooks may also be on this machine and in private networks, and without TLS.
    pub webhook_private_networks: bool,
}
