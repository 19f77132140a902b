//! What can be changed, and what came of it.

use serde_json::{Value, json};
use tollgate_rules::RuleSpec;

use crate::record::{ClientDraft, NamespaceDraft, OverrideDraft, RuleDraft, RuleModeDraft};
use crate::{Author, RecordKind};

/// One thing to change. `to: None` deletes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// A rule.
    Rule {
        /// Whose.
        namespace: String,
        /// Which.
        rule_id: String,
        /// What it shall be.
        to: Option<RuleDraft>,
        /// What must be true of it before.
        expect: Precondition,
    },
    /// An override.
    Override {
        /// Whose.
        namespace: String,
        /// Which.
        override_id: String,
        /// What it shall be.
        to: Option<OverrideDraft>,
        /// What must be true of it before.
        expect: Precondition,
    },
    /// The mode that holds instead of a rule's own, whatever the source of the rule.
    RuleMode {
        /// Whose.
        namespace: String,
        /// Of which rule.
        rule_id: String,
        /// What it shall be.
        to: Option<RuleModeDraft>,
        /// What must be true of it before.
        expect: Precondition,
    },
    /// What is known of a client.
    Client {
        /// Whose.
        namespace: String,
        /// Which.
        client_key: String,
        /// What it shall be.
        to: Option<ClientDraft>,
        /// What must be true of it before.
        expect: Precondition,
    },
    /// How a namespace reads requests.
    Namespace {
        /// Which.
        namespace: String,
        /// What it shall be; `None` for the defaults.
        to: Option<NamespaceDraft>,
        /// What must be true of it before. Without a row of its own, which the defaults do not need, it is not there.
        expect: Precondition,
    },
}

/// What must be true before an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing: it is made or replaced.
    Anything,
    /// It is not there yet; otherwise [`Conflict`](crate::Error::Conflict).
    Absent,
    /// It is there; otherwise [`NotFound`](crate::Error::NotFound).
    Present,
    /// It is there in this version; otherwise [`Stale`](crate::Error::Stale).
    Version(i64),
}

/// How edits are to be applied.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeSet {
    /// The edits, in their order.
    pub edits: Vec<Edit>,
    /// Who wants them.
    pub author: Author,
    /// What it is for: `create`, `update`, `import`, `rollback to 12`, … for people who read the audit.
    pub action: String,
    /// Do everything but commit.
    pub dry_run: bool,
    /// A key under which the answer is kept for a day: the same order again changes nothing and is answered alike. Whatever
    /// is made up for an order, such as an id, must be made from the key, or it is another order the second time.
    pub idempotency_key: Option<String>,
    /// Rules of files that the edits name, with their namespaces: overrides and switches may be of those as well.
    pub file_rules: Vec<(String, RuleSpec)>,
}

impl ChangeSet {
    /// The rule of a file that has this name in this namespace, if the order knows it.
    pub(crate) fn file_rule(&self, namespace: &str, rule_id: &str) -> Option<&RuleSpec> {
        let mut rules = self.file_rules.iter().filter(|(whose, _)| whose == namespace);
        rules.find(|(_, spec)| spec.name.as_deref() == Some(rule_id)).map(|(_, spec)| spec)
    }
}

/// What was changed.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedChanges {
    /// The generation that the changes are; the present one if nothing changed or nothing was committed.
    pub generation: i64,
    /// Everything that changed, cascades included; edits that change nothing are left out.
    pub changes: Vec<Change>,
    /// True if it had been applied before, under the same idempotency key.
    pub replayed: bool,
}

/// One thing that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What kind of thing.
    pub kind: RecordKind,
    /// Whose.
    pub namespace: String,
    /// Its id.
    pub id: String,
    /// The record before, as [`json`](crate::record) shows it; `None` if it was made.
    pub before: Option<Value>,
    /// The record after; `None` if it was deleted.
    pub after: Option<Value>,
}

impl Change {
    /// As answers show it.
    pub fn json(&self) -> Value {
        json!({
            "kind": self.kind.name(),
            "namespace": self.namespace,
            "id": self.id,
            "before": self.before,
            "after": self.after,
        })
    }

    /// The change that [`json`](Change::json) showed.
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

/// Shorthand for the changes of things that belong to no namespace.
pub(crate) fn fleet_change(kind: RecordKind, id: &str, before: Option<Value>, after: Option<Value>) -> Change {
    Change { kind, namespace: String::new(), id: id.to_owned(), before, after }
}
