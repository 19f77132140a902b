//! Rules of files as the admin API lists them, the same for all kinds of files.

use serde_json::{Map, Value, json};
use tollgate_rules::spec::{Enforcement, PLAN};
use tollgate_rules::yaml::YamlNode;
use tollgate_rules::{RuleFile, document, duration};
use tollgate_ruleset::EnvoyRule;
use tollgate_ruleset::{Rule, RuleSet};

use tollgate_admin::{FileKind, FileRule, to_object};
use tollgate_service::plans::PlanDocument;

/// The rules of a rules file, by their names in decisions.
pub(super) fn of_file(rules: &RuleSet, file: &RuleFile, tree: &YamlNode) -> Vec<FileRule> {
    let named = rules.rules().iter().zip(document::all_rules_of(tree));
    named.map(|(rule, node)| listed(rule, FileKind::Rules, document_of(rule, node, file))).collect()
}

/// The plans of a rules file.
pub(super) fn plans_of_file(file: &RuleFile, tree: &YamlNode) -> Vec<PlanDocument> {
    PlanDocument::of_file(file, tree, file.file_name.as_deref().unwrap_or_default(), to_object)
}

/// The rules of Envoy's files, without the rule for limits that come with requests.
pub(super) fn of_domains(rules: &RuleSet) -> Vec<FileRule> {
    let of_envoy = |rule: &'_ Rule| {
        let envoy = rule.envoy.as_deref().filter(|envoy| !envoy.overrides)?;
        Some(listed(rule, FileKind::Envoy, document_of_envoy(rule, envoy)))
    };
    rules.rules().iter().filter_map(of_envoy).collect()
}

fn listed(rule: &Rule, kind: FileKind, document: Map<String, Value>) -> FileRule {
    let file = rule.file_name.as_deref().unwrap_or_default();
    FileRule {
        namespace: rule.namespace.clone(),
        rule_id: rule.name.clone(),
        kind,
        location: format!("{file}:{}", rule.spec.at.line),
        document,
    }
}

/// The document of a rule, with the defaults of its file and without its name; that of a plan's rule with the condition
/// on the plans that have it.
fn document_of(rule: &Rule, node: &YamlNode, file: &RuleFile) -> Map<String, Value> {
    let mut document = to_object(&document::explicit(node, file));
    document.remove("name");
    if let Some(origin) = &rule.spec.plan {
        let conditions = document.entry("match").or_insert_with(|| json!({}));
        let plans = rule.spec.matches.attributes.iter().find(|(name, _)| name == PLAN);
        let plans: Vec<String> =
            plans.into_iter().flat_map(|(_, matcher)| &matcher.any).map(ToString::to_string).collect();
        if let Some(conditions) = conditions.as_object_mut() {
            conditions.insert(PLAN.to_owned(), plans.into());
        }
        document.insert(PLAN.to_owned(), origin.plan.as_str().into());
        document.insert("replaces".to_owned(), rule.spec.replaces.clone().into());
        document.retain(|name, value| name != "replaces" || value.as_array().is_some_and(|names| !names.is_empty()));
    }
    document
}

/// The document of a limit in Envoy's files: its entries are its conditions and its key.
fn document_of_envoy(rule: &Rule, envoy: &EnvoyRule) -> Map<String, Value> {
    let conditions: Map<String, Value> =
        envoy.entries().map(|(key, value)| (key.to_owned(), value.unwrap_or("*").into())).collect();
    let keys: Vec<&str> = envoy.entries().map(|(key, _)| key).collect();
    let mut document = Map::new();
    document.insert("match".to_owned(), conditions.into());
    document.insert("key_by".to_owned(), keys.join(":").into());
    match &rule.spec.limit {
        Some(limit) => {
            let window = duration::display(limit.window_ns);
            let limit = json!({ "algorithm": limit.algorithm.name(), "requests": limit.requests, "window": window });
            document.insert("limit".to_owned(), limit);
        }
        None => drop(document.insert("unlimited".to_owned(), true.into())),
    }
    if rule.spec.mode == Enforcement::Shadow {
        document.insert("mode".to_owned(), "shadow".into());
    }
    if rule.resource != rule.name {
        document.insert("resource".to_owned(), rule.resource.as_str().into());
    }
    document
}
