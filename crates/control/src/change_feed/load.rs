//! Loads the tables into the form that the engine is built from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use tokio::time;
use tollgate_core::Secret;
use tollgate_rules::{ClientSpec, GrantSpec, Normalize, OverrideSpec, PlanSchedule, SourcePosition, check};
use tollgate_ruleset::DirectoryRecord;

use super::namespace::{LoadedNamespace, NamespaceBuilder, name_of, spec_of};
use crate::control::{ChangedKeys, LoadedApiKeys, Quarantined, Snapshot};
use crate::db::DatabaseFuture;
use crate::record::{
    ClientRecord, GrantRecord, NamespaceDraft, OverrideRecord, PlanRecord, RuleModeRecord, RuleRecord, TokenRecord,
    document,
};
use crate::{Control, FleetState, RecordKind, Result};

/// The content of the database at one generation. Cheap to clone: unchanged parts are shared with the previous one.
#[derive(Clone, Debug)]
pub struct LoadedState {
    /// Generation and mode.
    pub state: FleetState,
    /// When reading began: earlier commits are included, later ones may be missing.
    pub read_at: time::Instant,
    /// Last row of the audit at this state.
    pub(super) audit_head: Arc<(i64, String)>,
    /// The key of digests and cursors that all nodes share; never shown.
    pub secret: Arc<str>,
    /// The content of each namespace.
    pub namespaces: BTreeMap<String, LoadedNamespace>,
    /// Tokens of the admin API.
    pub tokens: Arc<Vec<TokenRecord>>,
    /// API keys of clients.
    pub api_keys: Arc<LoadedApiKeys>,
    /// Rows that cannot be used, with the reasons. All other rows are used.
    pub quarantined: Vec<Quarantined>,
}

/// Most clients to read one by one; beyond that, reading all of them is faster.
const CLIENTS_READ_SINGLY_MAX: usize = 10_000;
/// Most rules of one namespace to read one by one.
const RULES_READ_SINGLY_MAX: usize = 1_000;
/// Size at which a delta is merged into its base: every change copies the delta.
const DELTA_MAX: usize = 10_000;

impl LoadedState {
    /// Loads everything.
    pub(super) async fn load(control: &Control, context: &LoadContext) -> Result<LoadedState> {
        let read_at = time::Instant::now();
        LoadedState::read_all(&mut control.snapshot().await?, context, read_at).await
    }

    /// Loads the changes since this state; `None` if there are none.
    pub(super) async fn load_changes(
        &self,
        control: &Control,
        context: &LoadContext,
    ) -> Result<Option<(LoadedState, LoadExtent)>> {
        let read_at = time::Instant::now();
        let mut snapshot = control.snapshot().await?;
        let touched = snapshot.changed_since(self.state.generation).await?;
        let others = |(name, known): (&String, &LoadedNamespace)| {
            let hashed = (known.settings.ipv6_prefix, known.settings.normalize);
            (context.identities)(name).is_some_and(|identity| identity != hashed)
        };
        let rehashed = self.namespaces.iter().any(others);
        let another = rehashed || !snapshot.continues_from(&self.audit_head).await?;
        if touched.state == self.state && !another {
            return Ok(None);
        }
        let incremental = match another || touched.everything || touched.clients.len() > CLIENTS_READ_SINGLY_MAX {
            true => None,
            false => self.read_changes(&mut snapshot, context, &touched).await?,
        };
        Ok(Some(match incremental {
            Some(loaded) => (LoadedState { read_at, ..loaded }, LoadExtent::Incremental),
            None => {
                let mut loaded = LoadedState::read_all(&mut snapshot, context, read_at).await?;
                for (name, namespace) in &mut loaded.namespaces {
                    self.namespaces.get(name).into_iter().for_each(|before| namespace.share_unchanged(&before.rules));
                }
                (loaded, LoadExtent::Full)
            }
        }))
    }

    fn read_all<'a>(
        snapshot: &'a mut Snapshot,
        context: &'a LoadContext,
        read_at: time::Instant,
    ) -> DatabaseFuture<'a, LoadedState> {
        Box::pin(LoadedState::read_tables(snapshot, context, read_at))
    }

    async fn read_tables(
        snapshot: &mut Snapshot,
        context: &LoadContext,
        read_at: time::Instant,
    ) -> Result<LoadedState> {
        let state = snapshot.state().await?;
        let mut quarantined = Vec::new();
        let mut drafts: BTreeMap<String, NamespaceBuilder> = BTreeMap::new();
        for (namespace, settings) in snapshot.namespaces().await? {
            let draft = NamespaceBuilder::new(context.settings(&namespace, settings), context.secret);
            drafts.insert(namespace, draft);
        }
        let draft = |drafts: &mut BTreeMap<String, NamespaceBuilder>,
                     namespace: &str,
                     put: &mut dyn FnMut(&mut NamespaceBuilder)| {
            if !drafts.contains_key(namespace) {
                let settings = context.settings(namespace, NamespaceDraft::default());
                drafts.insert(namespace.to_owned(), NamespaceBuilder::new(settings, context.secret));
            }
            drafts.get_mut(namespace).into_iter().for_each(put);
        };
        let put_rule = |row: RowResult<RuleRecord>| match row {
            Ok(record) => draft(&mut drafts, &record.namespace, &mut |draft| draft.rule(&record, &mut quarantined)),
            Err(bad) => quarantined.push(bad),
        };
        snapshot.rules(None, put_rule).await?;
        let put_mode = |row: RowResult<RuleModeRecord>| match row {
            Ok(record) => draft(&mut drafts, &record.namespace, &mut |draft| draft.mode(&record)),
            Err(bad) => quarantined.push(bad),
        };
        snapshot.rule_modes(None, put_mode).await?;
        let put_plan = |row: RowResult<PlanRecord>| match row {
            Ok(record) => draft(&mut drafts, &record.namespace, &mut |draft| draft.plan(&record, &mut quarantined)),
            Err(bad) => quarantined.push(bad),
        };
        snapshot.plans(None, put_plan).await?;
        let put_client = |row: RowResult<ClientRecord>| match row {
            Ok(record) => draft(&mut drafts, &record.namespace, &mut |draft| draft.clients.client(&client(&record))),
            Err(bad) => quarantined.push(bad),
        };
        snapshot.clients(put_client).await?;
        let put_override = |row: RowResult<OverrideRecord>| match row {
            Ok(record) => {
                let spec = overriding(&record);
                draft(&mut drafts, &record.namespace, &mut |draft| draft.clients.override_of(&spec));
            }
            Err(bad) => quarantined.push(bad),
        };
        snapshot.overrides(put_override).await?;
        let put_grant = |row: RowResult<GrantRecord>| match row {
            Ok(record) => draft(&mut drafts, &record.namespace, &mut |draft| draft.clients.grant(&grant(&record))),
            Err(bad) => quarantined.push(bad),
        };
        snapshot.grants(put_grant).await?;
        let tokens = Arc::new(snapshot.tokens().await?);
        let api_keys = Arc::new(snapshot.api_keys().await?);
        let mut namespaces = BTreeMap::new();
        for (name, draft) in drafts {
            let namespace = draft.finish(&name, &mut quarantined);
            namespaces.insert(name, namespace);
        }
        let secret = snapshot.secret().await?.into();
        let audit_head = Arc::new(snapshot.audit_head().await?);
        Ok(LoadedState { state, read_at, audit_head, secret, namespaces, tokens, api_keys, quarantined })
    }

    /// Applies the changed rows to this state; `None` if everything has to be loaded.
    async fn read_changes(
        &self,
        snapshot: &mut Snapshot,
        context: &LoadContext,
        touched: &ChangedKeys,
    ) -> Result<Option<LoadedState>> {
        let of_clients: BTreeSet<&str> = touched.clients.iter().map(|(namespace, _)| namespace.as_str()).collect();
        let touches = |bad: &Quarantined| of_clients.contains(bad.namespace.as_str());
        if self.quarantined.iter().any(|bad| !is_of_rules(bad) && touches(bad)) {
            return Ok(None); // the change may repair one of them
        }
        let audit_head = Arc::new(snapshot.audit_head().await?);
        let mut next = LoadedState { state: touched.state, audit_head, ..self.clone() };
        let settings: BTreeMap<String, NamespaceDraft> = snapshot.namespaces().await?.into_iter().collect();
        let settings =
            |namespace: &str| context.settings(namespace, settings.get(namespace).cloned().unwrap_or_default());
        let mut whole: BTreeSet<&str> = touched.namespaces.iter().map(String::as_str).collect();
        let mut single: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (namespace, id) in &touched.rules {
            single.entry(namespace).or_default().push(id);
        }
        for (namespace, ids) in single {
            if whole.contains(namespace) || !next.read_rules(snapshot, namespace, &ids, &settings(namespace)).await? {
                whole.insert(namespace);
            }
        }
        for namespace in whole {
            if !next.read_namespace(snapshot, context, namespace, settings(namespace)).await? {
                return Ok(None);
            }
        }
        let mut changed: BTreeMap<&str, Vec<DirectoryRecord>> = BTreeMap::new();
        for (namespace, client_key) in &touched.clients {
            if is_network(client_key) || is_respelled(client_key, settings(namespace).normalize) {
                return Ok(None); // other keys may name the same network or client
            }
            let (record, overrides) = snapshot.client_with_overrides(namespace, client_key).await?;
            let grants = snapshot.grants_to(namespace, client_key).await?;
            changed.entry(namespace).or_default().push(DirectoryRecord {
                client_key: client_key.clone(),
                client: record.as_ref().map(client),
                overrides: overrides.iter().map(overriding).collect(),
                grants: grants.iter().map(grant).collect(),
            });
        }
        for (namespace, known) in changed {
            let entry = next.namespaces.entry(namespace.to_owned()).or_insert_with(|| {
                NamespaceBuilder::new(settings(namespace), context.secret).finish(namespace, &mut Vec::new())
            });
            entry.directory = entry.directory.with(&known);
        }
        for namespace in next.namespaces.values_mut().filter(|namespace| namespace.directory.delta_len() > DELTA_MAX) {
            namespace.directory = namespace.directory.compact();
        }
        if touched.tokens {
            next.tokens = Arc::new(snapshot.tokens().await?);
        }
        if !touched.api_keys.is_empty() {
            snapshot.reread_api_keys(Arc::make_mut(&mut next.api_keys), &touched.api_keys).await?;
        }
        Ok(Some(next))
    }

    /// Reads all rules of a namespace again; false if its clients have to be read as well.
    async fn read_namespace(
        &mut self,
        snapshot: &mut Snapshot,
        context: &LoadContext,
        name: &str,
        settings: NamespaceDraft,
    ) -> Result<bool> {
        let before = self.namespaces.remove(name);
        let hashed = |before: &LoadedNamespace| (before.settings.ipv6_prefix, before.settings.normalize);
        if before.as_ref().is_some_and(|before| hashed(before) != (settings.ipv6_prefix, settings.normalize)) {
            return Ok(false); // part of the hashed identity of every client
        }
        let mut draft = NamespaceBuilder::new(settings, context.secret);
        self.quarantined.retain(|bad| !is_of_rules(bad) || bad.namespace != *name);
        let put_rule = |row: RowResult<RuleRecord>| match row {
            Ok(record) => draft.rule(&record, &mut self.quarantined),
            Err(bad) => self.quarantined.push(bad),
        };
        snapshot.rules(Some(name), put_rule).await?;
        let put_mode = |row: RowResult<RuleModeRecord>| match row {
            Ok(record) => draft.mode(&record),
            Err(bad) => self.quarantined.push(bad),
        };
        snapshot.rule_modes(Some(name), put_mode).await?;
        let put_plan = |row: RowResult<PlanRecord>| match row {
            Ok(record) => draft.plan(&record, &mut self.quarantined),
            Err(bad) => self.quarantined.push(bad),
        };
        snapshot.plans(Some(name), put_plan).await?;
        let mut namespace = draft.finish(name, &mut self.quarantined);
        if let Some(before) = before {
            namespace.directory = before.directory;
            namespace.share_unchanged(&before.rules);
        }
        self.namespaces.insert(name.to_owned(), namespace);
        Ok(true)
    }

    /// Reads single rules of a namespace; false if all have to be read, because rules depend on each other.
    async fn read_rules(
        &mut self,
        snapshot: &mut Snapshot,
        name: &str,
        ids: &[&str],
        settings: &NamespaceDraft,
    ) -> Result<bool> {
        let of_rules = |bad: &Quarantined| bad.kind == RecordKind::Rule && bad.namespace == name;
        let Some(namespace) = self.namespaces.get(name).filter(|namespace| !namespace.has_replaces) else {
            return Ok(false);
        };
        // A rule that is in conflict with others becomes usable when one of them goes.
        let kept_out = |bad: &Quarantined| of_rules(bad) && !bad.is_bad_alone();
        if ids.len() > RULES_READ_SINGLY_MAX || self.quarantined.iter().any(kept_out) {
            return Ok(false);
        }
        let mut rules = Vec::clone(&namespace.rules);
        let (mut wild, mut unusable) = (false, Vec::new());
        for id in ids {
            let spec = match snapshot.rule(name, id).await? {
                None => None,
                Some(Err(bad)) => {
                    unusable.push(bad);
                    None
                }
                Some(Ok(record)) => match spec_of(&record, settings) {
                    Ok(spec) => Some(spec),
                    Err(reasons) => {
                        unusable.push(Quarantined::rule(&record, reasons));
                        None
                    }
                },
            };
            if spec.as_ref().is_some_and(|spec| !spec.replaces.is_empty()) {
                return Ok(false);
            }
            wild |= spec.as_ref().is_some_and(|spec| check::wildcards(spec) > 0);
            let place = rules.binary_search_by(|rule| name_of(rule).cmp(id));
            if place.is_ok_and(|place| rules.get(place).is_some_and(|rule| rule.plan.is_some())) {
                return Ok(false); // a plan has a rule of this name
            }
            match (place, spec) {
                (Ok(place), Some(spec)) => {
                    rules.get_mut(place).into_iter().for_each(|rule| *rule = Arc::new(spec.clone()))
                }
                (Ok(place), None) => drop(rules.remove(place)),
                (Err(place), Some(spec)) => rules.insert(place, Arc::new(spec)),
                (Err(_), None) => {}
            }
        }
        if wild && !check::crowded(rules.iter().map(|rule| &**rule)).is_empty() {
            return Ok(false);
        }
        let rules = Arc::new(rules);
        let namespace = LoadedNamespace { rules, ..namespace.clone() };
        let touched: BTreeSet<&str> = ids.iter().copied().collect();
        self.quarantined.retain(|bad| !of_rules(bad) || !touched.contains(bad.id.as_str()));
        self.quarantined.append(&mut unusable);
        self.namespaces.insert(name.to_owned(), namespace);
        Ok(true)
    }
}

/// What loading needs besides the tables.
#[derive(Clone)]
pub struct LoadContext {
    /// The engine's key for the digests of clients.
    pub secret: Secret,
    /// Identity settings of namespaces that are set in rules files.
    pub identities: Identities,
}

/// For a namespace: leading bits of an IPv6 address that identify a client, and the Unicode form.
pub type Identities = Arc<dyn Fn(&str) -> Option<(u8, Normalize)> + Send + Sync>;

impl LoadContext {
    /// The effective settings of a namespace.
    fn settings(&self, namespace: &str, own: NamespaceDraft) -> NamespaceDraft {
        let (ipv6_prefix, normalize) = (self.identities)(namespace).unwrap_or((own.ipv6_prefix, own.normalize));
        NamespaceDraft { ipv6_prefix, normalize, ..own }
    }
}

/// How much was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadExtent {
    Incremental,
    Full,
}

type RowResult<T> = std::result::Result<T, Quarantined>;

/// True for an IPv6 address, where only the network identifies a client.
fn is_network(client_key: &str) -> bool {
    client_key.strip_prefix("ip:").is_some_and(|address| address.contains(':'))
}

/// True for a key that has equivalent spellings.
fn is_respelled(client_key: &str, form: Normalize) -> bool {
    form != Normalize::None && !client_key.is_ascii()
}

/// True for rows that are read with the rules of their namespace.
fn is_of_rules(bad: &Quarantined) -> bool {
    matches!(bad.kind, RecordKind::Rule | RecordKind::RuleMode | RecordKind::Plan)
}

fn client(record: &ClientRecord) -> ClientSpec {
    // A name alone needs no reader: there may be a million clients.
    let plan = match &record.draft.plan {
        Some(Value::String(name)) => Some(PlanSchedule::always(name)),
        Some(_) => document::client(&record.client_key, &record.draft).ok().and_then(|spec| spec.plan),
        None => None,
    };
    let attributes = record.draft.attributes.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let (tier, org) = (record.draft.tier.clone(), record.draft.organisation.clone());
    ClientSpec { client_key: record.client_key.clone(), at: SourcePosition::default(), tier, org, plan, attributes }
}

fn overriding(record: &OverrideRecord) -> OverrideSpec {
    let draft = &record.draft;
    OverrideSpec {
        client_key: draft.client_key.clone(),
        at: SourcePosition::default(),
        rule: draft.rule_id.clone(),
        requests: draft.max_requests.and_then(|most| u64::try_from(most).ok()),
        burst: u64::try_from(draft.burst_size).ok().filter(|burst| *burst > 0),
        unlimited: draft.unlimited,
        valid_from_ns: draft.valid_from.map(|from| from.time().nanos()),
        valid_until_ns: Some(draft.valid_until.time().nanos()),
        reason: None,
    }
}

fn grant(record: &GrantRecord) -> GrantSpec {
    let draft = &record.draft;
    GrantSpec {
        client_key: draft.client_key.clone(),
        at: SourcePosition::default(),
        rule: draft.rule_id.clone(),
        amount: u64::try_from(draft.amount).unwrap_or(0),
        valid_from_ns: draft.valid_from.map_or(0, |from| from.time().nanos()),
        valid_until_ns: draft.valid_until.map(|until| until.time().nanos()),
        reason: None,
    }
}
