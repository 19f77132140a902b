//! What every call of the admin API works with: the database, the tokens, the node and the secrets.

use std::sync::Arc;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use tollgate_control::{Control, Instant};
use tollgate_core::{Clock, Secret};
use tollgate_net::Address;
use tollgate_service::Service;
use tollgate_service::admin_tokens::AdminTokens;
use tollgate_service::auth_throttle::AuthThrottle;
use tollgate_service::penalties::PenaltyHolder;
use tollgate_service::traffic::TrafficMonitor;
use tollgate_service::violations::KeyHashing;
use tollgate_telemetry::LogThrottle;
use tollgate_webhooks::Webhooks;

use crate::access::AdminAccess;
use crate::browser::AllowedHosts;
use crate::cursor::CursorSealer;
use crate::mode_switch::ModeSwitch;
use crate::node::NodeHooks;
use crate::stream_limiter::StreamLimiter;

/// Configuration of the admin API.
pub struct AdminConfig {
    /// The database; without one nothing can be changed.
    pub control: Option<Control>,
    /// The tokens that are accepted.
    pub tokens: Arc<AdminTokens>,
    /// The switch between off, shadow and enforce.
    pub mode_switch: Arc<ModeSwitch>,
    /// The node that the API runs in.
    pub node: NodeHooks,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The listener's address: an allowed `Host`.
    pub address: Address,
    /// Host names that are allowed besides loopback names and the address.
    pub allowed_hosts: Vec<String>,
    /// Access to `/metrics`: open, or with a token.
    pub metrics: AdminAccess,
    /// Keys the digests of client keys and the cursors; the same on all nodes.
    pub secret: [u8; 32],
    /// Keys the hashes of client keys at rest. Rows with plain keys are found as well.
    pub site_key: [u8; 32],
    /// Sends to webhooks, if they are on.
    pub webhooks: Option<Webhooks>,
    /// What is seen of the traffic, unless that is off.
    pub traffic: Option<Arc<TrafficMonitor>>,
    /// Which penalties this node can lift.
    pub penalty_holder: PenaltyHolder,
}

/// How the API describes itself. Functions, because the description is made from the table of endpoints, and two
/// endpoints of that table return it.
#[derive(Clone, Copy)]
pub(crate) struct SelfDescription {
    /// The OpenAPI document.
    pub(crate) openapi: fn() -> &'static str,
    /// The HTML page.
    pub(crate) page: fn() -> &'static str,
}

/// The state shared by all calls.
pub(crate) struct AdminState {
    pub(crate) service: Arc<Service>,
    pub(crate) control: Option<Control>,
    pub(crate) tokens: Arc<AdminTokens>,
    pub(crate) mode_switch: Arc<ModeSwitch>,
    pub(crate) node: NodeHooks,
    pub(crate) hosts: AllowedHosts,
    pub(crate) metrics: AdminAccess,
    pub(crate) secret: Secret,
    pub(crate) key_hashing: KeyHashing,
    pub(crate) cursors: CursorSealer,
    pub(crate) auth_throttle: AuthThrottle,
    pub(crate) log_throttle: LogThrottle,
    pub(crate) description: SelfDescription,
    pub(crate) webhooks: Option<Webhooks>,
    pub(crate) traffic: Option<Arc<TrafficMonitor>>,
    pub(crate) penalty_holder: PenaltyHolder,
    pub(crate) streams: StreamLimiter,
    clock: Arc<dyn Clock>,
}

impl AdminState {
    pub(crate) fn new(service: Arc<Service>, config: AdminConfig, description: SelfDescription) -> AdminState {
        let AdminConfig { control, tokens, mode_switch, node, clock, address, allowed_hosts, .. } = config;
        let AdminConfig { metrics, secret, site_key, webhooks, traffic, penalty_holder, .. } = config;
        let masks = derive(&secret, b"masks").first_chunk().copied().unwrap_or_default();
        AdminState {
            service,
            control,
            tokens,
            mode_switch,
            node,
            hosts: AllowedHosts::new(&allowed_hosts, &address),
            metrics,
            secret: Secret::new(masks),
            key_hashing: KeyHashing::hashed(&site_key),
            cursors: CursorSealer::new(&derive(&secret, b"cursors")),
            auth_throttle: AuthThrottle::new(clock.clone(), Secret::new(masks)),
            log_throttle: LogThrottle::new(LINES_MAX),
            description,
            webhooks,
            traffic,
            penalty_holder,
            streams: StreamLimiter::default(),
            clock,
        }
    }

    /// The wall clock's time, as rows store it.
    pub(crate) fn now(&self) -> Instant {
        Instant::from(self.clock.wall())
    }
}

/// Log lines of one kind in ten seconds.
const LINES_MAX: u32 = 5;

/// A key of its own for each purpose.
fn derive(secret: &[u8; 32], purpose: &[u8]) -> [u8; 32] {
    let tag = sign(&Key::new(HMAC_SHA256, secret), purpose);
    tag.as_ref().first_chunk().copied().unwrap_or_default()
}
