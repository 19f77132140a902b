//! Edits, and their results.

use serde_json::{Value, json};
use tollgate_rules::RuleSpec;

use crate::record::{ClientDraft, GrantDraft, NamespaceDraft, OverrideDraft, PlanDraft, RuleDraft, RuleModeDraft};
use crate::{Author, RecordKind};

/// A record to change. `to: None` deletes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// A rule.
    Rule {
        /// Its namespace.
        namespace: String,
        /// Its id.
        rule_id: String,
        /// Its new content.
        to: Option<RuleDraft>,
        /// Its required state before the edit.
        expect: Precondition,
    },
    /// An override.
    Override {
        /// Its namespace.
        namespace: String,
        /// Its id.
        override_id: String,
        /// Its new content.
        to: Option<OverrideDraft>,
        /// Its required state before the edit.
        expect: Precondition,
    },
    /// A grant.
    Grant {
        /// Its namespace.
        namespace: String,
        /// Its id.
        grant_id: String,
        /// Its new content.
        to: Option<GrantDraft>,
        /// Its required state before the edit.
        expect: Precondition,
    },
    /// The mode that replaces a rule's own, wherever the rule is defined.
    RuleMode {
        /// Its namespace.
        namespace: String,
        /// The rule.
        rule_id: String,
        /// Its new content.
        to: Option<RuleModeDraft>,
        /// Its required state before the edit.
        expect: Precondition,
    },
    /// A client.
    Client {
        /// Its namespace.
        namespace: String,
        /// Its key.
        client_key: String,
        /// Its new content.
        to: Option<ClientDraft>,
        /// Its required state before the edit.
        expect: Precondition,
    },
    /// A plan.
    Plan {
        /// Its namespace.
        namespace: String,
        /// Its name.
        plan_id: String,
        /// Its new content.
        to: Option<PlanDraft>,
        /// Its required state before the edit.
        expect: Precondition,
    },
    /// Settings of a namespace.
    Namespace {
        /// Its name.
        namespace: String,
        /// Its new content; `None` for the defaults.
        to: Option<NamespaceDraft>,
        /// Its required state before the edit. Defaults are not stored: such a namespace is absent.
        expect: Precondition,
    },
}

impl Edit {
    /// The namespace of the record.
    pub(crate) fn namespace(&self) -> &str {
        match self {
            Edit::Rule { namespace, .. }
            | Edit::Override { namespace, .. }
            | Edit::Grant { namespace, .. }
            | Edit::RuleMode { namespace, .. }
            | Edit::Client { namespace, .. }
            | Edit::Plan { namespace, .. }
            | Edit::Namespace { namespace, .. } => namespace,
        }
    }

    /// Sets the required state.
    pub(crate) fn set_expected(&mut self, expected: Precondition) {
        match self {
            Edit::Rule { expect, .. }
            | Edit::Override { expect, .. }
            | Edit::Grant { expect, .. }
            | Edit::RuleMode { expect, .. }
            | Edit::Client { expect, .. }
            | Edit::Plan { expect, .. }
            | Edit::Namespace { expect, .. } => *expect = expected,
        }
    }
}

/// The required state of a record before an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Any: the record is created or replaced.
    Anything,
    /// It does not exist; otherwise [`Conflict`](crate::Error::Conflict).
    Absent,
    /// It exists; otherwise [`NotFound`](crate::Error::NotFound).
    Present,
    /// It exists in this version; otherwise [`Stale`](crate::Error::Stale).
    Version(i64),
}

/// Edits to apply together.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeSet {
    /// The edits, in their order.
    pub edits: Vec<Edit>,
    /// The author of all changes.
    pub author: Author,
    /// The purpose, for readers of the audit: `create`, `update`, `import`, `rollback to 12`, …
    pub action: String,
    /// Do everything but commit.
    pub dry_run: bool,
    /// A key under which the response is kept for a day: the same change set again changes nothing and gets the same
    /// response. Generated content, such as an id, must be derived from the key, or the second change set differs.
    pub idempotency_key: Option<String>,
    /// What happens to overrides, grants and modes of rules that are deleted.
    pub dependents: Dependents,
    /// Rules of files that the edits name, with their namespaces: overrides, grants and modes may refer to them. For a
    /// grant of an unknown rule, the nearest one.
    pub file_rules: Vec<(String, RuleSpec)>,
    /// Plans of files, with their namespaces: clients may have them.
    pub file_plans: Vec<(String, String)>,
}

/// What happens to the overrides, the grants and the mode of a rule when it is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dependents {
    /// They are deleted with it.
    #[default]
    Delete,
    /// They stay without effect, and are in force again when the rule returns: for a rollback of rules only.
    Keep,
}

impl ChangeSet {
    /// The rule of a file with this name in this namespace, if known.
    pub(crate) fn file_rule(&self, namespace: &str, rule_id: &str) -> Option<&RuleSpec> {
        let mut rules = self.file_rules.iter().filter(|(whose, _)| whose == namespace);
        rules.find(|(_, spec)| spec.name.as_deref() == Some(rule_id)).map(|(_, spec)| spec)
    }

    /// The rules of a file that have this name within plans.
    pub(crate) fn file_rules_in_plans(&self, namespace: &str, name: &str) -> impl Iterator<Item = &RuleSpec> {
        let rules = self.file_rules.iter().filter(move |(whose, _)| whose == namespace).map(|(_, spec)| spec);
        rules.filter(move |spec| spec.plan.as_ref().is_some_and(|origin| origin.name == name))
    }
}

/// The result of a change set.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedChanges {
    /// The generation of the changes; the present one if nothing changed or was committed.
    pub generation: i64,
    /// All changes, including cascades; edits without effect are left out.
    pub changes: Vec<Change>,
    /// True if it was applied before under the same idempotency key.
    pub replayed: bool,
}

/// A changed record.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The kind of record.
    pub kind: RecordKind,
    /// Its namespace.
    pub namespace: String,
    /// Its id.
    pub id: String,
    /// The record before, as [`json`](crate::record) represents it; `None` if it was created.
    pub before: Option<Value>,
    /// The record after; `None` if it was deleted.
    pub after: Option<Value>,
}

impl Change {
    /// The representation in responses.
    pub fn json(&self) -> Value {
        json!({
            "kind": self.kind.name(),
            "namespace": self.namespace,
            "id": self.id,
            "before": self.before,
            "after": self.after,
        })
    }

    /// Parses the representation of [`json`](Change::json).
    pub(crate) fn from_json(json: &Value) -> Option<Change> {
        let text = |name: &str| json.get(name)?.as_str();
        let record = |name: &str| json.get(name).filter(|value| !value.is_null()).cloned();
        Some(Change {
            kind: RecordKind::named(text("kind")?)?,
            namespace: text("namespace")?.to_owned(),
            id: text("id")?.to_owned(),
            before: record("before"),
            after: record("after"),
        })
    }
}

/// A change of a record without a namespace.
pub(crate) fn fleet_change(kind: RecordKind, id: &str, before: Option<Value>, after: Option<Value>) -> Change {
    Change { kind, namespace: String::new(), id: id.to_owned(), before, after }
}
