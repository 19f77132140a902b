//! Webhooks of one server: what is configured, and the task that sends.

use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::sync::Notify;
use tollgate_config::{Config, SignalSettings};
use tollgate_outbound::Networks;
use tollgate_service::violations::KeyHashing;
use tollgate_webhooks::{WebhookDispatcher, WebhookDispatcherConfig, WebhookMetrics, WebhookPolicy, Webhooks};

use crate::control_plane::ControlPlane;
use crate::parts::ServerParts;

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
}

/// The webhooks of a server, if they are on and there is a database.
pub(crate) fn webhooks(config: &Config, parts: &ServerParts, control_plane: &ControlPlane) -> Option<Webhooks> {
    let (of_server, control) = parts.webhooks.as_ref().zip(control_plane.control.clone())?;
    Some(Webhooks {
        control,
        policy: of_server.policy.clone(),
        site_key: control_plane.site_key(),
        clock: parts.service.clock.clone(),
        node: config.node_name(),
        due: of_server.due.clone(),
    })
}

/// The task that sends events to them.
pub(crate) fn dispatcher(
    config: &Config,
    parts: &ServerParts,
    control_plane: &ControlPlane,
) -> Option<WebhookDispatcher> {
    let webhooks = webhooks(config, parts, control_plane)?;
    let is_plain = config.control.violations_plain_keys;
    Some(WebhookDispatcher::new(WebhookDispatcherConfig {
        events: parts.events.clone(),
        changes: control_plane.states()?,
        metrics: parts.webhooks.as_ref()?.metrics.clone(),
        client_keys: if is_plain { KeyHashing::plain() } else { KeyHashing::hashed(&webhooks.site_key) },
        webhooks,
    }))
}
