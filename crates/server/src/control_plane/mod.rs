//! The control plane of one server: the change feed of the database, admin tokens, and the enforcement mode.

mod fleet_nodes;
mod mode_file;
mod open;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tollgate_control::change_feed::{Adopt, ChangeFeed, ChangeFeedConfig, ChangeFeedState, LoadContext, LoadedState};
use tollgate_control::{Author, Control};
use tollgate_core::{Clock, Secret};
use tollgate_engine::Engine;
use tollgate_rules::RuleSpec;
use tollgate_ruleset::Rule;
use tracing::{debug, error};

pub(crate) use self::fleet_nodes::FleetNodeSource;
pub(crate) use self::mode_file::ModeFile;
pub use self::open::with_password;
pub(crate) use self::open::{FirstToken, open};

use crate::rule_sources::{RulePublisher, RuleSourceState};
use tollgate_admin::{DatabaseHealth, ModeScope, ModeState, ModeSwitch, NodeStatus};
use tollgate_config::Config;
use tollgate_service::admin_tokens::AdminTokens;
use tollgate_service::api_keys::ApiKeys;
use tollgate_service::store::ConfiguredStore;

/// How often a mode that only this node knows is written to the database.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// Ticks of this interval between two writes of token uses.
const TOKEN_USES_EVERY_TICKS: u64 = 30;

/// What the control plane needs of the server.
#[derive(Clone)]
pub(crate) struct ControlPlaneParts {
    pub(crate) engine: Arc<Engine<ConfiguredStore>>,
    pub(crate) publisher: Arc<RulePublisher>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Filled with the API keys of the database.
    pub(crate) api_keys: Arc<ApiKeys>,
    /// The key of the digests in client directories.
    pub(crate) secret: Secret,
    /// From `secret_file`: with the secret of the database, the source of the site key.
    pub(crate) site_secret: Option<[u8; 32]>,
    /// The key of the digests and cursors of the admin API, where there is no database.
    pub(crate) admin_secret: [u8; 32],
}

/// The control plane of one server.
pub(crate) struct ControlPlane {
    pub(crate) control: Option<Control>,
    pub(crate) tokens: Arc<AdminTokens>,
    /// The API keys of clients: what gateways look up.
    pub(crate) api_keys: Arc<ApiKeys>,
    pub(crate) mode_switch: Arc<ModeSwitch>,
    pub(crate) first_token: Option<FirstToken>,
    feed: Option<Arc<ChangeFeed>>,
    secret: Arc<OnceLock<Arc<str>>>,
    parts: Arc<ControlPlaneParts>,
    mode_file: ModeFile,
    name: String,
    started_at: tollgate_control::Instant,
}

impl ControlPlane {
    /// Opens the database, if there is one, and applies its content.
    pub(crate) async fn start(config: &Config, parts: ControlPlaneParts) -> Result<ControlPlane> {
        let mut control_plane = ControlPlane::without_database(config, parts);
        let Some(opened) = open(&config.control).await? else { return Ok(control_plane) };
        if let Some(directory) = config.control.state_dir() {
            control_plane.parts.publisher.keep_numbers(&directory);
        }
        let following = ChangeFeedConfig {
            control: opened.control.clone(),
            copy: opened.copy,
            context: control_plane.terms(),
            poll: config.control.poll_interval,
            clock: control_plane.parts.clock.clone(),
            adopt: control_plane.adopt(),
        };
        let feed = ChangeFeed::start(following).await;
        let place = config.control.place().map(|place| place.to_string()).unwrap_or_default();
        control_plane.feed = Some(Arc::new(feed.with_context(|| format!("cannot use the database {place}"))?));
        control_plane.control = Some(opened.control);
        control_plane.first_token = opened.first_token;
        Ok(control_plane)
    }

    /// A control plane without a database: rules come from files, and the API cannot change them.
    pub(crate) fn without_database(config: &Config, parts: ControlPlaneParts) -> ControlPlane {
        let engine = parts.engine.clone();
        let mode_switch = ModeSwitch::new(move |mode| engine.set_enforcement(mode));
        let mode_file =
            ModeFile::new(config.control.state_dir().filter(|_| config.control.place().is_some()).as_deref());
        if let Some(setting) = mode_file.read() {
            mode_switch.set(setting);
        }
        ControlPlane {
            control: None,
            tokens: Arc::default(),
            api_keys: parts.api_keys.clone(),
            mode_switch: Arc::new(mode_switch),
            first_token: None,
            feed: None,
            secret: Arc::default(),
            started_at: parts.clock.wall().into(),
            parts: Arc::new(parts),
            mode_file,
            name: config.node_name(),
        }
    }

    /// Settings of a namespace in the rules file take precedence for client keys too.
    fn terms(&self) -> LoadContext {
        let publisher = self.parts.publisher.clone();
        LoadContext {
            secret: self.parts.secret,
            identities: Arc::new(move |namespace| publisher.identities_of_file(namespace)),
        }
    }

    /// The key of the digests and cursors of the admin API: the same on all nodes of a database.
    pub(crate) fn admin_secret(&self) -> [u8; 32] {
        let of_database = self.secret.get().filter(|secret| !secret.is_empty());
        let Some(secret) = of_database else { return self.parts.admin_secret };
        digest(&SHA256, secret.as_bytes()).as_ref().first_chunk().copied().unwrap_or(self.parts.admin_secret)
    }

    /// The key of client keys at rest: the same on all nodes of a database, and after restarts. With a `secret_file` it
    /// cannot be derived from the database alone, so that a copy of the tables cannot be searched for client keys.
    pub(crate) fn site_key(&self) -> [u8; 32] {
        let mut of_site = Context::with_key(&Key::new(HMAC_SHA256, &self.parts.site_secret.unwrap_or_default()));
        of_site.update(b"client keys at rest");
        of_site.update(self.secret.get().map_or(&b""[..], |secret| secret.as_bytes()));
        of_site.sign().as_ref().first_chunk().copied().unwrap_or_default()
    }

    /// Applies what the feed loaded.
    fn adopt(&self) -> Adopt {
        let (parts, tokens, mode_switch) = (self.parts.clone(), self.tokens.clone(), self.mode_switch.clone());
        let (mode_file, secret, api_keys) = (self.mode_file.clone(), self.secret.clone(), self.api_keys.clone());
        Arc::new(move |loaded: Arc<LoadedState>| {
            let in_force = parts.publisher.database(loaded.clone());
            tokens.replace(loaded.tokens.to_vec(), loaded.read_at);
            api_keys.replace(&loaded.api_keys);
            let stored = ModeState { mode: loaded.state.mode, since: loaded.state.mode_since, scope: ModeScope::Fleet };
            let before = mode_switch.setting();
            if mode_switch.set(stored) == stored && before != stored {
                mode_file.write(stored);
            }
            let _ = secret.set(loaded.secret.clone()); // the secret of a database never changes
            in_force
        })
    }

    /// The number of rules in files.
    pub(crate) fn file_rules(&self) -> usize {
        self.parts.publisher.file_rules().len()
    }

    /// The state of the feed, for metrics.
    pub(crate) fn states(&self) -> Option<watch::Receiver<ChangeFeedState>> {
        self.feed.as_ref().map(|feed| feed.state())
    }

    /// The current state of the feed.
    fn state(&self) -> Option<ChangeFeedState> {
        self.feed.as_ref().map(|feed| feed.state().borrow().clone())
    }

    /// What the admin API needs of this node.
    pub(crate) fn node(&self, files: Vec<watch::Receiver<RuleSourceState>>) -> tollgate_admin::NodeHooks {
        // The feed of this node hears of its own commits from the database layer.
        let engine = self.parts.engine.clone();
        let notify_nodes = move || {
            let engine = engine.clone();
            tokio::spawn(async move { engine.store().notify_changed().await });
        };
        let (feed, engine, name) = (self.feed.clone(), self.parts.engine.clone(), self.name.clone());
        let hidden_by = self.parts.publisher.clone();
        let status = move || {
            let mut status = status(feed.as_deref(), engine.rules().number, name.clone());
            status.quarantined.extend(hidden_by.hidden().into_iter().map(|(namespace, id)| {
                tollgate_admin::QuarantinedRow {
                    kind: "rule".to_owned(),
                    namespace,
                    id,
                    reason: "a file has a rule of this name, or its namespace is a domain of Envoy's files".to_owned(),
                }
            }));
            NodeStatus {
                store: fleet_nodes::servers(&engine),
                file_errors: files.iter().filter_map(|file| file.borrow().error.clone()).collect(),
                ..status
            }
        };
        let engine = self.parts.engine.clone();
        let file_rule = move |namespace: &str, name: &str| {
            let rules = engine.rules();
            let spec = |rule: &Rule| RuleSpec { name: Some(rule.name.clone()), ..RuleSpec::clone(&rule.spec) };
            if let Some(rule) = rules.rules.rule_named(namespace, name) {
                return rule.file_name.iter().map(|_| spec(rule)).collect();
            }
            let of_file =
                rules.rules.rules().iter().filter(|rule| rule.namespace == namespace && rule.file_name.is_some());
            let in_plans = |rule: &&Rule| rule.spec.plan.as_ref().is_some_and(|origin| origin.name == name);
            of_file.filter(in_plans).map(spec).collect()
        };
        let (publisher, mode_file) = (self.parts.publisher.clone(), self.mode_file.clone());
        let (plans, file, fleet) = (publisher.clone(), publisher.clone(), self.fleet_nodes());
        tollgate_admin::NodeHooks {
            notify_nodes: Box::new(notify_nodes),
            status: Box::new(status),
            nodes: Box::new(move || fleet.nodes()),
            file_plans: Box::new(move || plans.file_plans()),
            file_rules: Box::new(move || publisher.file_rules()),
            rules_file: Box::new(move || file.rules_file()),
            file_rule: Box::new(file_rule),
            persist_mode: Box::new(move |mode, since| {
                mode_file.write(ModeState { mode, since, scope: ModeScope::Node })
            }),
        }
    }

    /// The nodes of the fleet.
    pub(crate) fn fleet_nodes(&self) -> FleetNodeSource {
        FleetNodeSource {
            feed: self.feed.clone(),
            engine: self.parts.engine.clone(),
            mode_switch: self.mode_switch.clone(),
            clock: self.parts.clock.clone(),
            name: self.name.clone(),
            started_at: self.started_at,
        }
    }

    /// Polls the database at once.
    pub(crate) fn trigger(&self) {
        self.feed.iter().for_each(|feed| feed.trigger());
    }

    /// Periodic work; never returns.
    pub(crate) async fn run(&self) {
        let Some(control) = &self.control else { return std::future::pending().await };
        tokio::join!(self.listen(), self.write_node_state(control));
    }

    /// Polls the database when another node reports a change.
    async fn listen(&self) {
        let Some(mut listener) = self.parts.engine.store().change_listener() else { return };
        loop {
            listener.changed().await;
            self.trigger();
        }
    }

    /// Writes state that only this node has to the database.
    async fn write_node_state(&self, control: &Control) {
        let mut ticks = interval(WRITE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut seen, mut seen_at) = (self.mode_switch.setting(), Instant::now());
        for tick in 1_u64.. {
            ticks.tick().await;
            if self.mode_switch.setting() != seen {
                (seen, seen_at) = (self.mode_switch.setting(), Instant::now());
            }
            if seen_at.elapsed() > tollgate_admin::MODE_WRITE_TIMEOUT {
                self.write_mode(control).await;
            }
            if tick % TOKEN_USES_EVERY_TICKS == 0 {
                self.write_token_uses(control).await;
            }
        }
    }

    /// Writes a mode that was set while the database was away. The API call that set it tries first, so that the audit
    /// log names its token; the node writes only a mode that is older than that call can be.
    async fn write_mode(&self, control: &Control) {
        let setting = self.mode_switch.setting();
        let is_up = self.state().is_some_and(|state| state.unavailable.is_none());
        if setting.scope != ModeScope::Node || !is_up {
            return;
        }
        let author = Author { id: "node".to_owned(), name: self.name.clone() };
        match control.set_mode(setting.mode, setting.since, &author).await {
            Ok(state) => {
                let stored = ModeState { mode: state.mode, since: state.mode_since, scope: ModeScope::Fleet };
                self.mode_switch.confirm(setting, stored);
                self.mode_file.write(self.mode_switch.setting());
            }
            Err(why) => debug!(%why, "the mode is not in the database yet"),
        }
    }

    async fn write_token_uses(&self, control: &Control) {
        let used = self.tokens.used();
        if used.is_empty() {
            return;
        }
        if let Err(why) = control.touch_tokens(&used).await {
            error!(%why, "cannot write the last use of tokens");
        }
    }
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlPlane").field("feed", &self.feed).finish_non_exhaustive()
    }
}

fn status(feed: Option<&ChangeFeed>, serving: u64, node: String) -> NodeStatus {
    let Some(feed) = feed else { return NodeStatus { node, serving, ..NodeStatus::default() } };
    let state = feed.state().borrow().clone();
    let quarantined = state.quarantined.iter().map(|bad| tollgate_admin::QuarantinedRow {
        kind: bad.kind.name().to_owned(),
        namespace: bad.namespace.clone(),
        id: bad.id.clone(),
        reason: bad.reasons.iter().map(|reason| reason.message.as_str()).collect::<Vec<_>>().join("; "),
    });
    NodeStatus {
        node,
        serving,
        generation: Some(state.generation),
        database: state.unavailable.map_or(DatabaseHealth::Up, DatabaseHealth::Away),
        refreshed_at: state.fresh_at,
        quarantined: quarantined.collect(),
        ..NodeStatus::default()
    }
}
