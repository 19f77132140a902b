//! One namespace as loaded: its rules and clients, built from its rows without the rules that cannot be used.

use std::collections::BTreeMap;
use std::sync::Arc;

use tollgate_core::Secret;
use tollgate_rules::problem::Problem;
use tollgate_rules::{EscapedSlash, KeyBy, PlanSpec, RuleFile, RuleSpec, check, plan};
use tollgate_ruleset::{Directory, DirectoryBuilder};

use crate::Enforcement;
use crate::control::Quarantined;
use crate::record::{NamespaceDraft, PlanRecord, RuleModeRecord, RuleRecord};
use crate::{FieldError, RecordKind};

/// The content of one namespace.
#[derive(Clone, Debug)]
pub struct LoadedNamespace {
    /// Its settings and plans, without rules, clients and overrides.
    pub settings: Arc<RuleFile>,
    /// Its rules and those of its plans, sorted by id; disabled rules have the mode off. Unchanged rules are shared with the previous
    /// generation, so that they are not compiled again.
    pub rules: Arc<Vec<Arc<RuleSpec>>>,
    /// Some rule replaces others by name: rules cannot be validated one by one.
    pub(super) has_replaces: bool,
    /// Clients and overrides.
    pub directory: Directory,
}

impl LoadedNamespace {
    /// The rules that `before` does not share: new and changed ones.
    pub(super) fn changed_since<'a>(
        &'a self,
        before: Option<&'a LoadedNamespace>,
    ) -> impl Iterator<Item = &'a RuleSpec> {
        let mut before = before.map_or(&[][..], |before| &before.rules[..]).iter().peekable();
        let is_changed = move |rule: &&Arc<RuleSpec>| {
            while before.next_if(|old| name_of(old) < name_of(rule)).is_some() {}
            before.next_if(|old| Arc::ptr_eq(old, rule)).is_none()
        };
        self.rules.iter().filter(is_changed).map(|rule| &**rule)
    }

    /// Shares equal rules with the previous state, so that they are not compiled again.
    pub(super) fn share_unchanged(&mut self, before: &[Arc<RuleSpec>]) {
        let rules = Arc::make_mut(&mut self.rules);
        let mut before = before.iter().peekable();
        for rule in rules {
            while before.next_if(|old| name_of(old) < name_of(rule)).is_some() {}
            if let Some(old) = before.next_if(|old| name_of(old) == name_of(rule)).filter(|old| *old == rule) {
                *rule = old.clone();
            }
        }
    }
}

pub(super) fn name_of(rule: &RuleSpec) -> &str {
    rule.name.as_deref().unwrap_or_default()
}

/// A namespace while its rows are read.
pub(super) struct NamespaceBuilder {
    settings: NamespaceDraft,
    rules: Vec<RuleSpec>,
    plans: Vec<PlanSpec>,
    modes: BTreeMap<String, Enforcement>,
    pub(super) clients: DirectoryBuilder,
}

impl NamespaceBuilder {
    pub(super) fn new(settings: NamespaceDraft, secret: Secret) -> NamespaceBuilder {
        let mut clients = Directory::builder(secret, settings.ipv6_prefix);
        clients.normalize(settings.normalize);
        NamespaceBuilder { settings, rules: Vec::new(), plans: Vec::new(), modes: BTreeMap::new(), clients }
    }

    pub(super) fn rule(&mut self, record: &RuleRecord, quarantined: &mut Vec<Quarantined>) {
        match spec_of(record, &self.settings) {
            Ok(spec) => self.rules.push(spec),
            Err(reasons) => quarantined.push(Quarantined::rule(record, reasons)),
        }
    }

    pub(super) fn plan(&mut self, record: &PlanRecord, quarantined: &mut Vec<Quarantined>) {
        match record.spec(&self.settings) {
            Ok(spec) => self.plans.push(spec),
            Err(reasons) => quarantined.push(bad_plan(&record.namespace, &record.plan_id, reasons)),
        }
    }

    /// Leaves out plans that do not fit the others, and adds the rules of the rest.
    fn expand_plans(&mut self, namespace: &str, quarantined: &mut Vec<Quarantined>) {
        while let Some(problem) = check::plans(&self.plans).into_iter().next() {
            let path = problem.field.strip_prefix("plans.").unwrap_or_default();
            let name = path.split('.').next().unwrap_or_default().to_owned();
            let before = self.plans.len();
            self.plans.retain(|plan| plan.name != name);
            quarantined.push(bad_plan(namespace, &name, vec![FieldError::from(problem)]));
            if self.plans.len() == before {
                self.plans.clear(); // cannot happen: problems name the plan that they are of
            }
        }
        for mut rule in plan::expand(&self.plans) {
            rule.key_by.get_or_insert_with(KeyBy::client);
            self.rules.push(rule);
        }
    }

    pub(super) fn mode(&mut self, record: &RuleModeRecord) {
        self.modes.insert(record.rule_id.clone(), record.draft.mode);
    }

    /// Rules that are valid alone but not together are quarantined until the rest is consistent. The API refuses such
    /// sets; only SQL can write them.
    pub(super) fn finish(mut self, namespace: &str, quarantined: &mut Vec<Quarantined>) -> LoadedNamespace {
        let NamespaceDraft { ipv6_prefix, keep_escaped_slash, allow_block_all, normalize } = self.settings;
        let escaped_slash = if keep_escaped_slash { EscapedSlash::Keep } else { EscapedSlash::Reject };
        let namespace = namespace.to_owned();
        let settings =
            RuleFile { namespace, ipv6_prefix, escaped_slash, allow_block_all, normalize, ..RuleFile::default() };
        self.expand_plans(&settings.namespace, quarantined);
        // Sorted here, because the collation of the database may differ.
        self.rules.sort_unstable_by(|one, other| name_of(one).cmp(name_of(other)));
        let mut file = RuleFile { rules: self.rules, plans: self.plans, modes: self.modes, ..settings };
        let mut misfits = check::unusable_rules(&file);
        let mut rules = Vec::with_capacity(file.rules.len() - misfits.len());
        for (place, spec) in std::mem::take(&mut file.rules).into_iter().enumerate() {
            match misfits.remove(&place) {
                None => rules.push(Arc::new(spec)),
                Some(Problem { code, message, help, .. }) => quarantined.push(Quarantined {
                    kind: RecordKind::Rule,
                    namespace: file.namespace.clone(),
                    id: spec.name.unwrap_or_default(),
                    reasons: vec![FieldError { field: String::new(), code: code.to_owned(), message, help }],
                }),
            }
        }
        let has_replaces = rules.iter().any(|rule| !rule.replaces.is_empty());
        LoadedNamespace {
            settings: Arc::new(file),
            rules: Arc::new(rules),
            has_replaces,
            directory: self.clients.finish(),
        }
    }
}

fn bad_plan(namespace: &str, plan_id: &str, reasons: Vec<FieldError>) -> Quarantined {
    Quarantined { kind: RecordKind::Plan, namespace: namespace.to_owned(), id: plan_id.to_owned(), reasons }
}

/// The specification of a row with all defaults filled in, ready for use.
pub(super) fn spec_of(
    record: &RuleRecord,
    settings: &NamespaceDraft,
) -> std::result::Result<RuleSpec, Vec<FieldError>> {
    let mut spec = record.spec(settings)?;
    spec.key_by.get_or_insert_with(KeyBy::client);
    // A disabled rule stays in the set: another rule may replace it by name.
    if !record.draft.enabled {
        spec.mode = Enforcement::Off;
    }
    Ok(spec)
}
