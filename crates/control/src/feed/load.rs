//! From tables to what an engine can be built with.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time;
use tollgate_core::Secret;
use tollgate_rules::{
    ClientSpec, Directory, DirectoryBuilder, EscapedSlash, Known, Mode, Normalize, OverrideSpec, Place, Problem,
    RuleFile, RuleSpec, check,
};

use crate::control::{Quarantined, Snapshot, Touched};
use crate::record::{ClientRecord, NamespaceDraft, OverrideRecord, RuleModeRecord, RuleRecord, TokenRecord};
use crate::{Control, Fault, Kind, Result, State};

/// What the database says, at one generation. Cheap to clone: what did not change is shared with the one before.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Generation and mode.
    pub state: State,
    /// Before this, nothing had been read yet: what was committed earlier is contained, what came later may be missing.
    pub read_at: time::Instant,
    /// The row of the audit that it is the state after.
    pub(super) mark: Arc<(i64, String)>,
    /// What all nodes make digests and cursors with; never shown.
    pub secret: Arc<str>,
    /// What it says of each namespace.
    pub namespaces: BTreeMap<String, LoadedNamespace>,
    /// Who may use the admin API.
    pub tokens: Arc<Vec<TokenRecord>>,
    /// Rows that cannot be used, and why; the rest is.
    pub quarantined: Vec<Quarantined>,
}

/// What the database says of one namespace.
#[derive(Clone, Debug)]
pub struct LoadedNamespace {
    /// Its rules that are enabled, and its settings. Clients and overrides are in the directory.
    pub file: Arc<RuleFile>,
    /// What is known of clients, and what is different for them.
    pub directory: Directory,
}

/// How many clients may be read one by one; beyond that, reading all of them is quicker.
const ONE_BY_ONE: usize = 10_000;
/// When a delta is folded into its base: copying it, at every change, begins to be felt.
const DELTA_MAX: usize = 10_000;

impl Loaded {
    /// Reads everything.
    pub(super) async fn whole(control: &Control, terms: &Terms) -> Result<Loaded> {
        let read_at = time::Instant::now();
        Loaded::all(&mut control.snapshot().await?, terms, read_at).await
    }

    /// Reads what changed since; `None` if nothing did.
    pub(super) async fn next(&self, control: &Control, terms: &Terms) -> Result<Option<(Loaded, Extent)>> {
        let read_at = time::Instant::now();
        let mut snapshot = control.snapshot().await?;
        let touched = snapshot.touched(self.state.generation).await?;
        let others = |(name, known): (&String, &LoadedNamespace)| {
            (terms.identities)(name).is_some_and(|said| said != (known.file.ipv6_prefix, known.file.normalize))
        };
        let rehashed = self.namespaces.iter().any(others);
        let another = rehashed || !snapshot.continues(&self.mark).await?;
        if touched.state == self.state && !another {
            return Ok(None);
        }
        let stepped = match another || touched.everything || touched.clients.len() > ONE_BY_ONE {
            true => None,
            false => self.step(&mut snapshot, terms, &touched).await?,
        };
        Ok(Some(match stepped {
            Some(loaded) => (Loaded { read_at, ..loaded }, Extent::Step),
            None => (Loaded::all(&mut snapshot, terms, read_at).await?, Extent::Whole),
        }))
    }

    async fn all(snapshot: &mut Snapshot, terms: &Terms, read_at: time::Instant) -> Result<Loaded> {
        let state = snapshot.state().await?;
        let mut quarantined = Vec::new();
        let mut drafts: BTreeMap<String, Draft> = BTreeMap::new();
        for (namespace, settings) in snapshot.namespaces().await? {
            let draft = Draft::new(terms.settings(&namespace, settings), terms.secret);
            drafts.insert(namespace, draft);
        }
        let draft = |drafts: &mut BTreeMap<String, Draft>, namespace: &str, put: &mut dyn FnMut(&mut Draft)| {
            if !drafts.contains_key(namespace) {
                let settings = terms.settings(namespace, NamespaceDraft::default());
                drafts.insert(namespace.to_owned(), Draft::new(settings, terms.secret));
            }
            drafts.get_mut(namespace).into_iter().for_each(put);
        };
        let put_rule = |row: Row<RuleRecord>| match row {
            Ok(record) => draft(&mut drafts, &record.namespace, &mut |draft| draft.rule(&record, &mut quarantined)),
            Err(bad) => quarantined.push(bad),
        };
        snapshot.rules(None, put_rule).await?;
        let put_mode = |row: Row<RuleModeRecord>| match row {
            Ok(record) => draft(&mut drafts, &record.namespace, &mut |draft| draft.mode(&record)),
            Err(bad) => quarantined.push(bad),
        };
        snapshot.rule_modes(None, put_mode).await?;
        let put_client = |row: Row<ClientRecord>| match row {
            Ok(record) => draft(&mut drafts, &record.namespace, &mut |draft| draft.clients.client(&client(&record))),
            Err(bad) => quarantined.push(bad),
        };
        snapshot.clients(put_client).await?;
        let put_override = |row: Row<OverrideRecord>| match row {
            Ok(record) => {
                let spec = overriding(&record);
                draft(&mut drafts, &record.namespace, &mut |draft| draft.clients.override_of(&spec));
            }
            Err(bad) => quarantined.push(bad),
        };
        snapshot.overrides(put_override).await?;
        let tokens = Arc::new(snapshot.tokens().await?);
        let mut namespaces = BTreeMap::new();
        for (name, draft) in drafts {
            let (file, directory) = draft.finish(&name, &mut quarantined);
            namespaces.insert(name, LoadedNamespace { file, directory });
        }
        let secret = snapshot.secret().await?.into();
        let mark = Arc::new(snapshot.mark().await?);
        Ok(Loaded { state, read_at, mark, secret, namespaces, tokens, quarantined })
    }

    /// The same one step further; `None` if it is a leap.
    async fn step(&self, snapshot: &mut Snapshot, terms: &Terms, touched: &Touched) -> Result<Option<Loaded>> {
        let touches = |bad: &Quarantined| touched.clients.iter().any(|(namespace, _)| *namespace == bad.namespace);
        if self.quarantined.iter().any(|bad| bad.kind != Kind::Rule && bad.kind != Kind::RuleMode && touches(bad)) {
            return Ok(None); // one of them may be what was repaired
        }
        let mark = Arc::new(snapshot.mark().await?);
        let mut next = Loaded { state: touched.state, mark, ..self.clone() };
        let settings: BTreeMap<String, NamespaceDraft> = snapshot.namespaces().await?.into_iter().collect();
        let settings =
            |namespace: &str| terms.settings(namespace, settings.get(namespace).cloned().unwrap_or_default());
        for namespace in &touched.namespaces {
            let settings = settings(namespace);
            let before = next.namespaces.remove(namespace);
            let hashed = |file: &RuleFile| (file.ipv6_prefix, file.normalize);
            let wanted = (settings.ipv6_prefix, settings.normalize);
            if before.as_ref().is_some_and(|before| hashed(&before.file) != wanted) {
                return Ok(None); // identities are hashed with it: all of them change
            }
            let mut draft = Draft::new(settings, terms.secret);
            let of_rules = |bad: &Quarantined| bad.kind == Kind::Rule || bad.kind == Kind::RuleMode;
            next.quarantined.retain(|bad| !of_rules(bad) || bad.namespace != *namespace);
            let put_rule = |row: Row<RuleRecord>| match row {
                Ok(record) => draft.rule(&record, &mut next.quarantined),
                Err(bad) => next.quarantined.push(bad),
            };
            snapshot.rules(Some(namespace), put_rule).await?;
            let put_mode = |row: Row<RuleModeRecord>| match row {
                Ok(record) => draft.mode(&record),
                Err(bad) => next.quarantined.push(bad),
            };
            snapshot.rule_modes(Some(namespace), put_mode).await?;
            let (file, empty) = draft.finish(namespace, &mut next.quarantined);
            let directory = before.map_or(empty, |before| before.directory);
            next.namespaces.insert(namespace.clone(), LoadedNamespace { file, directory });
        }
        let mut changed: BTreeMap<&str, Vec<Known>> = BTreeMap::new();
        for (namespace, client_key) in &touched.clients {
            if is_network(client_key) || is_respelled(client_key, settings(namespace).normalize) {
                return Ok(None); // others may name the same network or client, and are told together
            }
            let (record, overrides) = snapshot.known(namespace, client_key).await?;
            changed.entry(namespace).or_default().push(Known {
                client_key: client_key.clone(),
                client: record.as_ref().map(client),
                overrides: overrides.iter().map(overriding).collect(),
            });
        }
        for (namespace, known) in changed {
            let entry = next.namespaces.entry(namespace.to_owned()).or_insert_with(|| {
                let (file, directory) =
                    Draft::new(settings(namespace), terms.secret).finish(namespace, &mut Vec::new());
                LoadedNamespace { file, directory }
            });
            entry.directory = entry.directory.with(&known);
        }
        for namespace in next.namespaces.values_mut().filter(|namespace| namespace.directory.delta_len() > DELTA_MAX) {
            namespace.directory = namespace.directory.compact();
        }
        if touched.tokens {
            next.tokens = Arc::new(snapshot.tokens().await?);
        }
        Ok(Some(next))
    }
}

/// What reading needs besides the tables.
#[derive(Clone)]
pub struct Terms {
    /// The key of the digests that clients are found by: the engine's.
    pub secret: Secret,
    /// How clients of a namespace are told apart, where a rules file says so and not the database.
    pub identities: Identities,
}

/// Answers for a namespace: how many leading bits of an IPv6 address identify a client, and in which Unicode form.
pub type Identities = Arc<dyn Fn(&str) -> Option<(u8, Normalize)> + Send + Sync>;

impl Terms {
    /// The settings of a namespace as they are in force.
    fn settings(&self, namespace: &str, own: NamespaceDraft) -> NamespaceDraft {
        let (ipv6_prefix, normalize) = (self.identities)(namespace).unwrap_or((own.ipv6_prefix, own.normalize));
        NamespaceDraft { ipv6_prefix, normalize, ..own }
    }
}

/// How much was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Step,
    Whole,
}

type Row<T> = std::result::Result<T, Quarantined>;

/// A namespace that is being read.
struct Draft {
    settings: NamespaceDraft,
    rules: Vec<RuleSpec>,
    modes: BTreeMap<String, Mode>,
    clients: DirectoryBuilder,
}

impl Draft {
    fn new(settings: NamespaceDraft, secret: Secret) -> Draft {
        let mut clients = Directory::builder(secret, settings.ipv6_prefix);
        clients.normalize(settings.normalize);
        Draft { settings, rules: Vec::new(), modes: BTreeMap::new(), clients }
    }

    fn rule(&mut self, record: &RuleRecord, quarantined: &mut Vec<Quarantined>) {
        match record.spec(&self.settings) {
            // Not left out: another rule may replace it by name.
            Ok(spec) if !record.draft.enabled => self.rules.push(RuleSpec { mode: Mode::Off, ..spec }),
            Ok(spec) => self.rules.push(spec),
            Err(reasons) => {
                let (namespace, id) = (record.namespace.clone(), record.rule_id.clone());
                quarantined.push(Quarantined { kind: Kind::Rule, namespace, id, reasons });
            }
        }
    }

    fn mode(&mut self, record: &RuleModeRecord) {
        let mode = match record.draft.mode {
            crate::Mode::Enforce => Mode::Enforce,
            crate::Mode::Shadow => Mode::Shadow,
            crate::Mode::Off => Mode::Off,
        };
        self.modes.insert(record.rule_id.clone(), mode);
    }

    /// Rules that each are right, and are not together, are taken out one by one until the rest is: somebody wrote them
    /// past the API, which refuses such sets.
    fn finish(self, namespace: &str, quarantined: &mut Vec<Quarantined>) -> (Arc<RuleFile>, Directory) {
        let NamespaceDraft { ipv6_prefix, keep_escaped_slash, allow_block_all, normalize } = self.settings;
        let escaped_slash = if keep_escaped_slash { EscapedSlash::Keep } else { EscapedSlash::Reject };
        let namespace = namespace.to_owned();
        let settings =
            RuleFile { namespace, ipv6_prefix, escaped_slash, allow_block_all, normalize, ..RuleFile::default() };
        let mut file = RuleFile { rules: self.rules, modes: self.modes, ..settings };
        while let Some((place, problem)) = first_problem(&file) {
            let spec = file.rules.remove(place);
            let help = problem.help.clone();
            let reason = Fault { field: String::new(), code: problem.code.to_owned(), message: problem.message, help };
            let id = spec.name.unwrap_or_default();
            quarantined.push(Quarantined {
                kind: Kind::Rule,
                namespace: file.namespace.clone(),
                id,
                reasons: vec![reason],
            });
        }
        (Arc::new(file), self.clients.finish())
    }
}

/// A rule that does not go with the others, and why.
fn first_problem(file: &RuleFile) -> Option<(usize, Problem)> {
    check::across(file).into_iter().find_map(|problem| {
        let place = problem.field.strip_prefix("rules[")?.split(']').next()?.parse().ok()?;
        (place < file.rules.len()).then_some((place, problem))
    })
}

/// True for an address of IPv6, of which only the network tells clients apart.
fn is_network(client_key: &str) -> bool {
    client_key.strip_prefix("ip:").is_some_and(|address| address.contains(':'))
}

/// True for a key that other spellings may name, too.
fn is_respelled(client_key: &str, form: Normalize) -> bool {
    form != Normalize::None && !client_key.is_ascii()
}

fn client(record: &ClientRecord) -> ClientSpec {
    let attributes = record.draft.attributes.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let (tier, org) = (record.draft.tier.clone(), record.draft.organisation.clone());
    ClientSpec { client_key: record.client_key.clone(), at: Place::default(), tier, org, attributes }
}

fn overriding(record: &OverrideRecord) -> OverrideSpec {
    let draft = &record.draft;
    OverrideSpec {
        client_key: draft.client_key.clone(),
        at: Place::default(),
        rule: draft.rule_id.clone(),
        requests: draft.max_requests.and_then(|most| u64::try_from(most).ok()),
        burst: u64::try_from(draft.burst_size).ok().filter(|burst| *burst > 0),
        unlimited: draft.unlimited,
        valid_from_ns: draft.valid_from.map(|from| from.time().nanos()),
        valid_until_ns: Some(draft.valid_until.time().nanos()),
        reason: None,
    }
}
