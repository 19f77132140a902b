//! Exports a namespace as a rules file, and imports a rules file into a namespace.
//!
//! The round trip keeps everything that a rules file can express. Ids of overrides and grants, and display names stay in the database;
//! a disabled rule is exported as `mode: off`.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use tokio::task::spawn_blocking;
use tollgate_control::record::{
    ClientDraft, ClientRecord, GrantRecord, NamespaceDraft, OverrideDraft, OverrideRecord, PlanDraft, PlanRecord, Role,
    RuleDraft, RuleRecord,
};
use tollgate_control::{
    ClientFilter, Control, Edit, GrantFilter, Instant, Listing, OverrideFilter, Page, Precondition, RuleFilter,
};
use tollgate_rules::path::EscapedSlash;
use tollgate_rules::yaml::YamlNode;
use tollgate_rules::{ClientSpec, Normalize, OverrideSpec, Problem, RuleFile, document, lint_text, read};
use tollgate_ruleset::{CompileOptions, RuleSet, stable_names};

use super::access::AdminAccess;
use super::call::AdminCall;
use super::endpoint::{AdminEndpoint, HttpMethod, RequestBody, ResponseContent, Tag};
use super::grant_exchange;
use super::parameter::{DRY_RUN, ParameterKind, parameter};
use super::plan_exchange;
use super::plans::PlanResource;
use super::problem::AdminProblem;
use super::resource::{self, Resource};
use super::response::AdminResponse;
use super::rules::RuleResource;
use super::tree;
use super::{changes, percent, warnings};

/// Entries per page that are read from the database.
const PIECE: u32 = 1000;
/// The end of an override whose file entry has none.
const FOREVER: Instant = Instant(18_429_292_799_999_999); // 2553-12-31T23:59:59.999999Z
/// The name of the file in problems.
const FILE_NAME: &str = "rules.yaml";

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        detail: "Rules, clients, overrides and grants of the database, as a rules file. It holds client keys, so it is for operators.",
        access: AdminAccess::Needs(Role::Operator),
        responses: &[(200, ResponseContent::Text("application/yaml"))],
        ..AdminEndpoint::get(
            "/v1/rules/export",
            "exportRules",
            Tag::Rules,
            "Export a namespace as a rules file",
            |call| Box::pin(export(call)),
        )
    },
    AdminEndpoint {
        detail: "Everything in the file is made or replaced, as one generation; what the file does not have stays, unless \
                 `prune` says otherwise.",
        query: &[DRY_RUN, parameter("prune", ParameterKind::Flag, "Also remove rules that the file does not have.")],
        body: RequestBody::Yaml,
        responses: &[(200, ResponseContent::Json("Changes"))],
        ..AdminEndpoint::change(
            HttpMethod::Post,
            "/v1/rules/import",
            "importRules",
            Tag::Rules,
            "Import a rules file",
            |call| Box::pin(import(call)),
        )
    },
];

/// `GET /v1/rules/export`
pub(super) async fn export(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    if !call.may_see() {
        return Err(AdminProblem::not_found("such namespace"));
    }
    let here = StoredNamespace::read(call.control()?, call.namespace()).await?;
    let text = spawn_blocking(move || document::print(&here.tree())).await.map_err(|_| interrupted())?;
    Ok(AdminResponse::text("application/yaml", text))
}

/// `POST /v1/rules/import`
pub(super) async fn import(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let (namespace, body) = (call.namespace().to_owned(), call.body.to_vec());
    let file = spawn_blocking(move || ImportFile::read(&namespace, &body)).await.map_err(|_| interrupted())??;
    let here = StoredNamespace::read(call.control()?, call.namespace()).await?;
    let prune = call.query().flag("prune").unwrap_or(false);
    let mut edits = here.edits(&file, if prune { Prune::Rules } else { Prune::Nothing });
    let in_files = (call.state.node.file_rules)();
    let in_files: HashMap<&str, &Map<String, Value>> = in_files
        .iter()
        .filter(|rule| rule.namespace == call.namespace())
        .map(|rule| (rule.rule_id.as_str(), &rule.document))
        .collect();
    // A rule that a file of this node defines identically is already in force.
    edits.retain(|edit| {
        !matches!(edit, Edit::Rule { rule_id, to: Some(draft), .. }
            if in_files.get(file.shown.get(rule_id).unwrap_or(rule_id).as_str()) == Some(&&draft.document))
    });
    for edit in &edits {
        if let Edit::Rule { rule_id, .. } = edit {
            RuleResource::guard(call, rule_id)?;
        }
        for (plan_id, _) in &file.plans {
            PlanResource::guard(call, plan_id)?;
        }
    }
    let applied = resource::apply(call, edits, "import").await?;
    Ok(changes::response_with(call, &applied, warnings::of_file(file.warnings)))
}

fn interrupted() -> AdminProblem {
    AdminProblem::new(503, "stopping", "The server is stopping.")
}

/// Which rules that the file lacks are deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prune {
    Nothing,
    Rules,
}

/// All records of a namespace in the database.
struct StoredNamespace {
    name: String,
    settings: NamespaceDraft,
    rules: Vec<RuleRecord>,
    plans: Vec<PlanRecord>,
    clients: Vec<ClientRecord>,
    overrides: Vec<OverrideRecord>,
    grants: Vec<GrantRecord>,
}

impl StoredNamespace {
    async fn read(control: &Control, name: &str) -> Result<StoredNamespace, AdminProblem> {
        let namespaces = Some(vec![name.to_owned()]);
        let (mut rules, mut pieces) = (Vec::new(), Pager::default());
        let filter = RuleFilter { namespaces: namespaces.clone(), ..RuleFilter::default() };
        while let Some(page) = pieces.next() {
            pieces.take(control.rules(&filter, &page).await?, &mut rules);
        }
        let (mut clients, mut pieces) = (Vec::new(), Pager::default());
        let filter = ClientFilter { namespaces: namespaces.clone(), ..ClientFilter::default() };
        while let Some(page) = pieces.next() {
            pieces.take(control.clients(&filter, &page).await?, &mut clients);
        }
        let (mut overrides, mut pieces) = (Vec::new(), Pager::default());
        let filter = OverrideFilter { namespaces: namespaces.clone(), ..OverrideFilter::default() };
        while let Some(page) = pieces.next() {
            pieces.take(control.overrides(&filter, &page).await?, &mut overrides);
        }
        let (mut grants, mut pieces) = (Vec::new(), Pager::default());
        let filter = GrantFilter { namespaces, ..GrantFilter::default() };
        while let Some(page) = pieces.next() {
            pieces.take(control.grants(&filter, &page).await?, &mut grants);
        }
        let settings = control.namespaces().await?.into_iter().find(|(other, _)| other == name);
        let settings = settings.map(|(_, settings)| settings).unwrap_or_default();
        let plans = control.plans(Some(&[name.to_owned()])).await?;
        Ok(StoredNamespace { name: name.to_owned(), settings, rules, plans, clients, overrides, grants })
    }

    fn tree(&self) -> YamlNode {
        let NamespaceDraft { ipv6_prefix, keep_escaped_slash, allow_block_all, normalize } = self.settings;
        let mut entries = vec![("version", YamlNode::plain(1)), ("namespace", YamlNode::text(&self.name))];
        entries.extend(allow_block_all.then(|| ("allow_block_all", YamlNode::plain(true))));
        entries.extend((ipv6_prefix != 64).then(|| ("ipv6_prefix", YamlNode::plain(ipv6_prefix))));
        entries.extend(keep_escaped_slash.then(|| ("escaped_slash", YamlNode::text("keep"))));
        entries.extend((normalize != Normalize::None).then(|| ("normalize", YamlNode::text(normalize.name()))));
        entries.push(("rules", YamlNode::list(self.rules.iter().map(rule_tree))));
        if !self.plans.is_empty() {
            let plans = self.plans.iter().map(|plan| (plan.plan_id.as_str(), plan_exchange::tree(plan)));
            entries.push(("plans", YamlNode::map(plans)));
        }
        if !self.clients.is_empty() {
            entries.push(("clients", YamlNode::list(self.clients.iter().map(client_tree))));
        }
        // Overrides and grants of rules in files are not exported: a rules file may only name its own rules.
        let mut names: HashSet<String> = self.rules.iter().map(|rule| rule.rule_id.clone()).collect();
        names.extend(self.plans.iter().flat_map(plan_exchange::rule_names));
        names.insert(OverrideSpec::EVERY_RULE.to_owned());
        let mut own = self.overrides.iter().filter(|record| names.contains(&record.draft.rule_id)).peekable();
        if own.peek().is_some() {
            entries.push(("overrides", YamlNode::list(own.map(override_tree))));
        }
        let mut own = self.grants.iter().filter(|record| names.contains(record.draft.rule_id.as_str())).peekable();
        if own.peek().is_some() {
            entries.push(("grants", YamlNode::list(own.map(grant_exchange::tree))));
        }
        YamlNode::map(entries)
    }

    /// The edits that make the namespace match the file.
    fn edits(&self, file: &ImportFile, prune: Prune) -> Vec<Edit> {
        let mut edits = Vec::new();
        let settings = file.settings(&self.settings);
        if settings != self.settings {
            edits.push(Edit::Namespace {
                namespace: self.name.clone(),
                to: Some(settings),
                expect: Precondition::Anything,
            });
        }
        let mut known: HashMap<&str, &RuleRecord> =
            self.rules.iter().map(|rule| (rule.rule_id.as_str(), rule)).collect();
        for (rule_id, document) in &file.rules {
            let before = known.remove(rule_id.as_str());
            // A disabled rule was exported as `off`: it stays as it is.
            if before.is_some_and(|rule| !rule.draft.enabled && exported(rule) == *document) {
                continue;
            }
            let name = before.map(|rule| rule.draft.name.clone()).unwrap_or_default();
            let draft = RuleDraft { name, document: document.clone(), enabled: true };
            edits.push(RuleResource::edit(&self.name, rule_id, Some(draft), Precondition::Anything));
        }
        if prune == Prune::Rules {
            edits.extend(
                self.rules
                    .iter()
                    .filter(|rule| known.contains_key(rule.rule_id.as_str()))
                    .map(|rule| RuleResource::edit(&self.name, &rule.rule_id, None, Precondition::Anything)),
            );
        }
        edits.extend(file.plans.iter().map(|(plan_id, draft)| {
            PlanResource::edit(&self.name, plan_id, Some(draft.clone()), Precondition::Anything)
        }));
        if prune == Prune::Rules {
            let gone = self.plans.iter().filter(|plan| file.plans.iter().all(|(plan_id, _)| *plan_id != plan.plan_id));
            edits.extend(gone.map(|plan| PlanResource::edit(&self.name, &plan.plan_id, None, Precondition::Anything)));
        }
        edits.extend(file.file.clients.iter().map(|client| self.client(client)));
        edits.extend(self.override_edits(&file.file.overrides));
        edits.extend(grant_exchange::edits(&self.name, &self.grants, &file.file.grants));
        edits
    }

    fn client(&self, spec: &ClientSpec) -> Edit {
        let ClientSpec { client_key, tier, org, plan, attributes, .. } = spec.clone();
        let plan = plan.as_ref().map(plan_exchange::steps);
        let draft = ClientDraft { tier, organisation: org, plan, attributes: attributes.into_iter().collect() };
        Edit::Client { namespace: self.name.clone(), client_key, to: Some(draft), expect: Precondition::Anything }
    }

    /// Overrides of a file have no ids: client, rule and start identify one.
    fn override_edits(&self, specs: &[OverrideSpec]) -> Vec<Edit> {
        let known = self.overrides.iter().map(|record| {
            let OverrideDraft { client_key, rule_id, valid_from, .. } = &record.draft;
            ((client_key.as_str(), rule_id.as_str(), *valid_from), record.override_id.as_str())
        });
        let known: HashMap<_, &str> = known.collect();
        let edit = |spec: &OverrideSpec| {
            let draft = override_draft(spec);
            let key = (draft.client_key.as_str(), draft.rule_id.as_str(), draft.valid_from);
            let override_id = match known.get(&key) {
                Some(id) => (*id).to_owned(),
                None => override_id(&draft),
            };
            Edit::Override {
                namespace: self.name.clone(),
                override_id,
                to: Some(draft),
                expect: Precondition::Anything,
            }
        };
        specs.iter().map(edit).collect()
    }
}

/// Reads a list page by page.
struct Pager {
    next: Option<Page>,
}

impl Default for Pager {
    fn default() -> Pager {
        Pager { next: Some(Page { limit: PIECE, after: None }) }
    }
}

impl Pager {
    fn next(&mut self) -> Option<Page> {
        self.next.take()
    }

    fn take<T>(&mut self, piece: Listing<T>, entries: &mut Vec<T>) {
        entries.extend(piece.entries);
        self.next = piece.next.map(|after| Page { limit: PIECE, after: Some(after) });
    }
}

/// The document of a rule, as exported.
fn exported(rule: &RuleRecord) -> Map<String, Value> {
    let mut document = rule.draft.document.clone();
    if !rule.draft.enabled {
        document.insert("mode".to_owned(), "off".into());
    }
    document
}

fn rule_tree(rule: &RuleRecord) -> YamlNode {
    let mut entries = vec![("name".to_owned(), YamlNode::text(&rule.rule_id))];
    entries.extend(exported(rule).iter().map(|(name, value)| (name.clone(), tree::of_json(value))));
    YamlNode::map(entries)
}

fn client_tree(client: &ClientRecord) -> YamlNode {
    let ClientDraft { tier, organisation, plan, attributes } = &client.draft;
    let mut entries = vec![("client_key", YamlNode::text(&client.client_key))];
    entries.extend(plan.as_ref().map(|plan| ("plan", tree::of_json(plan))));
    entries.extend(tier.as_ref().map(|tier| ("tier", YamlNode::text(tier))));
    entries.extend(organisation.as_ref().map(|organisation| ("org", YamlNode::text(organisation))));
    if !attributes.is_empty() {
        let attributes = attributes.iter().map(|(name, value)| (name.as_str(), YamlNode::text(value)));
        entries.push(("attributes", YamlNode::map(attributes)));
    }
    YamlNode::map(entries)
}

fn override_tree(record: &OverrideRecord) -> YamlNode {
    let OverrideDraft { client_key, rule_id, max_requests, burst_size, unlimited, valid_from, valid_until, reason } =
        &record.draft;
    let mut entries = vec![("client_key", YamlNode::text(client_key)), ("rule", YamlNode::text(rule_id))];
    entries.extend(max_requests.map(|requests| ("requests", YamlNode::plain(requests))));
    entries.extend((*burst_size > 0).then(|| ("burst", YamlNode::plain(burst_size))));
    entries.extend(unlimited.then(|| ("unlimited", YamlNode::plain(true))));
    entries.extend(valid_from.map(|from| ("valid_from", YamlNode::text(from.to_string()))));
    entries.extend((*valid_until < FOREVER).then(|| ("valid_until", YamlNode::text(valid_until.to_string()))));
    entries.extend((!reason.is_empty()).then(|| ("reason", YamlNode::text(reason))));
    YamlNode::map(entries)
}

pub(super) fn override_draft(spec: &OverrideSpec) -> OverrideDraft {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let instant = |nanos: u64| Instant(number(nanos / 1000));
    OverrideDraft {
        client_key: spec.client_key.clone(),
        rule_id: spec.rule.clone(),
        max_requests: spec.requests.map(number),
        burst_size: spec.burst.map_or(0, number),
        unlimited: spec.unlimited,
        valid_from: spec.valid_from_ns.map(instant),
        valid_until: spec.valid_until_ns.map_or(FOREVER, instant),
        reason: spec.reason.clone().unwrap_or_default(),
    }
}

/// A stable id, so that importing a file twice changes nothing the second time.
fn override_id(draft: &OverrideDraft) -> String {
    let from = draft.valid_from.map(|from| from.to_string()).unwrap_or_default();
    format!("ovr-{}", resource::hash(&[&draft.client_key, &draft.rule_id, &from]))
}

/// A rules file in a request body.
struct ImportFile {
    file: RuleFile,
    /// Ids and documents, with the defaults of the file written into each.
    rules: Vec<(String, Map<String, Value>)>,
    plans: Vec<(String, PlanDraft)>,
    /// By the ids of unnamed rules: the names under which a node that reads the file shows them.
    shown: HashMap<String, String>,
    /// Settings that the file contains.
    named: HashSet<&'static str>,
    /// Warnings about the file.
    warnings: Vec<Problem>,
}

impl ImportFile {
    fn read(namespace: &str, body: &[u8]) -> Result<ImportFile, AdminProblem> {
        let text = read::decode(FILE_NAME, body).map_err(AdminProblem::of_report)?;
        let (mut file, root) = tollgate_rules::read_with_tree(FILE_NAME, text).map_err(AdminProblem::of_report)?;
        if root.get("namespace").is_some() && file.namespace != namespace {
            let other = percent::encode(&file.namespace);
            let message =
                format!("the file is for the namespace `{}`, and this call for `{namespace}`", file.namespace);
            let help = format!("call it with ?namespace={other}, or take the line out of the file");
            return Err(AdminProblem::of_fault("namespace", "other-namespace", message, &help));
        }
        let (warnings, _) = lint_text(&file, text).into_parts();
        file.namespace = namespace.to_owned();
        let names = names(&file)?;
        let trees = document::rules_of(&root).iter().map(|rule| document::explicit(rule, &file));
        let documents = trees.map(|tree| {
            let mut document = tree::to_object(&tree);
            document.remove("name");
            document
        });
        let plans = plan_exchange::drafts(&file, &root);
        // An unnamed rule is stored under the digest that its buckets are keyed by: it does not depend on the other rules of
        // the file, so importing again changes nothing, and it keeps the rule's counters.
        let ids = stable_names(&file);
        let shown = ids.iter().cloned().zip(names).filter(|(id, name)| id != name).collect();
        let rules = ids.into_iter().zip(documents).collect();
        let named = ["ipv6_prefix", "escaped_slash", "allow_block_all", "normalize"].into_iter();
        let named = named.filter(|name| root.get(name).is_some()).collect();
        Ok(ImportFile { rules, plans, shown, named, warnings, file })
    }

    /// The settings of the namespace after the import.
    fn settings(&self, before: &NamespaceDraft) -> NamespaceDraft {
        let RuleFile { ipv6_prefix, escaped_slash, allow_block_all, normalize, .. } = self.file;
        let names = |name: &str| self.named.contains(name);
        NamespaceDraft {
            ipv6_prefix: if names("ipv6_prefix") { ipv6_prefix } else { before.ipv6_prefix },
            keep_escaped_slash: match names("escaped_slash") {
                true => escaped_slash == EscapedSlash::Keep,
                false => before.keep_escaped_slash,
            },
            allow_block_all: if names("allow_block_all") { allow_block_all } else { before.allow_block_all },
            normalize: if names("normalize") { normalize } else { before.normalize },
        }
    }
}

/// The effective names of the rules of a file, unnamed ones included.
fn names(file: &RuleFile) -> Result<Vec<String>, AdminProblem> {
    let standalone = RuleFile { clients: Vec::new(), overrides: Vec::new(), ..file.clone() };
    match RuleSet::compile(std::slice::from_ref(&standalone), &CompileOptions::reproducible()) {
        Ok(set) => Ok(set.rules().iter().map(|rule| rule.name.clone()).collect()),
        Err(problems) => Err(AdminProblem::of_report(tollgate_rules::Report::new(FILE_NAME, "", problems))),
    }
}
