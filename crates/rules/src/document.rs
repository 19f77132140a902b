//! Single rules, clients and overrides as trees: from a row of a database, the JSON of an API, or one entry of a file.
//!
//! The strict reader of files reads them, and [`crate::check`] applies. Paths of problems start at the entry:
//! `limit.window`, not `rules[0].limit.window`. [`check::across`] checks several entries against each other.
//!
//! ```
//! use tollgate_rules::document::{self, NamespaceSettings};
//! use tollgate_rules::yaml::YamlNode;
//!
//! let limit = YamlNode::map([("requests", YamlNode::plain(10)), ("window", YamlNode::text("1s"))]);
//! let rule = document::rule(&YamlNode::map([("limit", limit)]), &NamespaceSettings::default()).unwrap();
//! assert_eq!(rule.limit.unwrap().capacity(), 10);
//!
//! let misspelt = YamlNode::map([("limt", YamlNode::plain(10))]);
//! let problems = document::rule(&misspelt, &NamespaceSettings::default()).unwrap_err();
//! assert_eq!((problems[0].code, problems[0].field.as_str()), ("unknown-field", "limt"));
//! ```

use crate::check;
use crate::fmt;
use crate::path::{EscapedSlash, PathCase};
use crate::problem::{Problem, Problems};
use crate::read::{
    FieldPath, FieldValue, Spelling, read_client, read_grant, read_override, read_plan, read_root, read_rule,
};
use crate::spec::{ClientSpec, GrantSpec, OnFail, OverrideSpec, PlanSpec, RuleFile, RuleSpec};
use crate::yaml::{SourceSpan, YamlKey, YamlKind, YamlNode};

/// Settings of a file or namespace that reading one of its rules depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceSettings {
    /// Treatment of `%2F` in paths.
    pub escaped_slash: EscapedSlash,
    /// Whether paths are case-sensitive, unless the rule sets it.
    pub case: PathCase,
    /// Permits rules that deny every request.
    pub allow_block_all: bool,
}

impl From<&RuleFile> for NamespaceSettings {
    fn from(file: &RuleFile) -> NamespaceSettings {
        NamespaceSettings { escaped_slash: file.escaped_slash, case: file.case, allow_block_all: file.allow_block_all }
    }
}

/// Reads a rule, or returns all its problems.
pub fn rule(node: &YamlNode, settings: &NamespaceSettings) -> Result<RuleSpec, Vec<Problem>> {
    let NamespaceSettings { escaped_slash, case, allow_block_all } = *settings;
    let read =
        |value: FieldValue<'_>, problems: &mut Problems| read_rule(value, Spelling { escaped_slash, case }, problems);
    one(node, "rule", read, |spec| check::rule(spec, String::new(), allow_block_all))
}

/// Reads a plan. [`check::plans`] checks it against the other plans.
pub fn plan(name: &str, node: &YamlNode, settings: &NamespaceSettings) -> Result<PlanSpec, Vec<Problem>> {
    let NamespaceSettings { escaped_slash, case, .. } = *settings;
    let read = |value: FieldValue<'_>, problems: &mut Problems| PlanSpec {
        name: name.to_owned(),
        ..read_plan(value, Spelling { escaped_slash, case }, problems)
    };
    one(node, "plan", read, |spec| check::plan(spec, ""))
}

/// Reads a client.
pub fn client(node: &YamlNode) -> Result<ClientSpec, Vec<Problem>> {
    one(node, "client", read_client, |spec| check::client(spec, String::new()))
}

/// Reads an override. [`check::across`] checks its numbers against its rule.
pub fn override_of(node: &YamlNode) -> Result<OverrideSpec, Vec<Problem>> {
    one(node, "override", read_override, |spec| check::change(spec, String::new()))
}

/// Reads a grant. [`check::across`] checks it against its rule.
pub fn grant_of(node: &YamlNode) -> Result<GrantSpec, Vec<Problem>> {
    one(node, "grant", read_grant, |spec| check::grant(spec, String::new()))
}

/// Reads a whole file from its tree.
pub fn file(root: &YamlNode) -> Result<RuleFile, Vec<Problem>> {
    let mut problems = Problems::default();
    let file = read_root(root, &mut problems);
    if problems.is_empty() { Ok(file) } else { Err(problems.into_parts().0) }
}

fn one<T>(
    node: &YamlNode,
    whole: &'static str,
    read: impl FnOnce(FieldValue<'_>, &mut Problems) -> T,
    check: impl FnOnce(&T) -> Vec<Problem>,
) -> Result<T, Vec<Problem>> {
    let mut problems = Problems::default();
    let spec = read(FieldValue { node, path: FieldPath::Root(whole) }, &mut problems);
    if problems.is_empty() {
        problems.extend(check(&spec)); // only if it was read: one mistake is reported once
    }
    if problems.is_empty() { Ok(spec) } else { Err(problems.into_parts().0) }
}

/// The trees of a file's rules, in the order of [`RuleFile::rules`].
pub fn rules_of(root: &YamlNode) -> &[YamlNode] {
    root.get("rules").map(YamlNode::items).unwrap_or_default()
}

/// The trees of a file's plans, by name, in the order of [`RuleFile::plans`].
pub fn plans_of(root: &YamlNode) -> &[(YamlKey, YamlNode)] {
    match root.get("plans").map(|plans| &plans.kind) {
        Some(YamlKind::Map(entries)) => entries,
        _ => &[],
    }
}

/// The trees of a plan's rules, in the order of [`PlanSpec::limits`].
pub fn limits_of(plan: &YamlNode) -> &[YamlNode] {
    plan.get("limits").map(YamlNode::items).unwrap_or_default()
}

/// The tree of each rule of a file, in the order of [`RuleFile::rules`], as its author wrote it: those of plans without
/// the condition on the plan.
pub fn all_rules_of(root: &YamlNode) -> impl Iterator<Item = &YamlNode> {
    let of_plans = plans_of(root).iter().flat_map(|(_, plan)| limits_of(plan));
    rules_of(root).iter().chain(of_plans)
}

/// The trees of a file's clients, in the order of [`RuleFile::clients`].
pub fn clients_of(root: &YamlNode) -> &[YamlNode] {
    root.get("clients").map(YamlNode::items).unwrap_or_default()
}

/// The trees of a file's overrides, in the order of [`RuleFile::overrides`].
pub fn overrides_of(root: &YamlNode) -> &[YamlNode] {
    root.get("overrides").map(YamlNode::items).unwrap_or_default()
}

/// The trees of a file's grants, in the order of [`RuleFile::grants`].
pub fn grants_of(root: &YamlNode) -> &[YamlNode] {
    root.get("grants").map(YamlNode::items).unwrap_or_default()
}

/// The rule with its file's `key_by`, `on_fail` and `case` written into it, so that it means the same when stored
/// alone.
pub fn explicit(rule: &YamlNode, file: &RuleFile) -> YamlNode {
    let mut rule = rule.clone();
    let YamlKind::Map(entries) = &mut rule.kind else { return rule };
    let mut set = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|_| entries.iter().all(|(key, _)| key.text != name)) {
            entries.push((YamlKey { text: name.to_owned(), span: SourceSpan::default() }, YamlNode::text(value)));
        }
    };
    set("key_by", file.key_by.as_ref().map(ToString::to_string));
    set("on_fail", file.on_fail.map(OnFail::name).map(str::to_owned));
    set("case", (file.case == PathCase::Insensitive).then(|| "insensitive".to_owned()));
    rule
}

/// A whole file's tree as text, in the layout of [`format`](fn@crate::format). It reads back as the same file.
pub fn print(root: &YamlNode) -> String {
    fmt::lay_out(root)
}

#[cfg(test)]
mod tests;
