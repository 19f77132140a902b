//! Settings of what a server tells operators by itself: metrics, traces and webhooks.

/// Settings of metrics and webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalSettings {
    /// Whether names of metrics lack the prefix `tollgate_`.
    pub bare_metric_names: bool,
    /// Whether events are sent to the webhooks of the database.
    pub webhooks: bool,
    /// Hosts that webhooks may name; any if empty.
    pub webhook_hosts: Vec<String>,
    /// The OTLP collector, as a URL; nothing is exported if none.
    pub otlp_endpoint: Option<String>,
    /// Of a hundred traces that begin here, how many are exported.
    pub otlp_sample: usize,
    /// Whether webhooks may also be on this machine and in private networks, and without TLS.
    pub webhook_private_networks: bool,
}

impl Default for SignalSettings {
    fn default() -> Self {
        SignalSettings {
            bare_metric_names: false,
            webhooks: false,
            webhook_hosts: Vec::new(),
            otlp_endpoint: None,
            otlp_sample: 1,
            webhook_private_networks: false,
        }
    }
}
