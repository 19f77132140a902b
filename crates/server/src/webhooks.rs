//! Webhooks of one server: what is configured, and the task that sends.

use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::sync::Notify;
use tollgate_config::{Config, SignalSettings};
use tollgate_core::Clock;
use tollgate_outbound::Networks;
use tollgate_service::EventQueue;
use tollgate_service::violations::KeyHashing;
use tollgate_webhooks::{WebhookDispatcher, WebhookDispatcherConfig, WebhookMetrics, WebhookPolicy, Webhooks};

use crate::control_plane::ControlPlane;

/// What exists before there is a database.
pub(crate) struct WebhookParts {
    policy: WebhookPolicy,
    pub(crate) metrics: Arc<WebhookMetrics>,
    /// Notified when there is something to send.
    due: Arc<Notify>,
}

impl WebhookParts {
    /// As configured; `None` if webhooks are off.
    pub(crate) fn read(settings: &SignalSettings) -> Result<Option<WebhookParts>> {
        if !settings.webhooks {
            return Ok(None);
        }
        let networks = if settings.webhook_private_networks { Networks::Any } else { Networks::Public };
        let policy = WebhookPolicy::new(networks, &settings.webhook_hosts).context("webhooks: TLS cannot be used")?;
        Ok(Some(WebhookParts { policy, metrics: Arc::default(), due: Arc::default() }))
    }

    /// Sends for a server, if there is a database.
    pub(crate) fn webhooks(
        &self,
        config: &Config,
        clock: &Arc<dyn Clock>,
        control_plane: &ControlPlane,
    ) -> Option<Webhooks> {
        Some(Webhooks {
            control: control_plane.control.clone()?,
            policy: self.policy.clone(),
            site_key: control_plane.site_key(),
            clock: clock.clone(),
            node: config.node_name(),
            due: self.due.clone(),
        })
    }

    /// The task that sends events.
    pub(crate) fn dispatcher(
        &self,
        config: &Config,
        clock: &Arc<dyn Clock>,
        control_plane: &ControlPlane,
        events: Arc<EventQueue>,
    ) -> Option<WebhookDispatcher> {
        let webhooks = self.webhooks(config, clock, control_plane)?;
        let is_plain = config.control.violations_plain_keys;
        Some(WebhookDispatcher::new(WebhookDispatcherConfig {
            events,
            changes: control_plane.states()?,
            metrics: self.metrics.clone(),
            client_keys: if is_plain { KeyHashing::plain() } else { KeyHashing::hashed(&webhooks.site_key) },
            webhooks,
        }))
    }
}
