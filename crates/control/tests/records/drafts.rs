//! Records for tests, and the change sets that write them.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tollgate_control::record::{ClientDraft, OverrideDraft, RuleDraft};
use tollgate_control::{
    AppliedChanges, ChangeSet, Control, Dependents, Edit, Error, FieldError, Instant, Precondition,
};

use crate::databases::author;

pub const NAMESPACE: &str = "default";

/// The first instant of 2026, and a year later.
pub const NEW_YEAR: Instant = Instant(1_767_225_600_000_000);
pub const NEXT_YEAR: Instant = Instant(1_798_761_600_000_000);

pub fn document(json: Value) -> Map<String, Value> {
    json.as_object().unwrap().clone()
}

pub fn rule_draft(json: Value) -> RuleDraft {
    RuleDraft { name: String::new(), document: document(json), enabled: true }
}

/// A limit per second.
pub fn per_second(requests: u64) -> RuleDraft {
    rule_draft(json!({ "limit": { "requests": requests, "window": "1s" } }))
}

pub fn override_draft(client_key: &str, rule_id: &str, requests: i64) -> OverrideDraft {
    OverrideDraft {
        client_key: client_key.to_owned(),
        rule_id: rule_id.to_owned(),
        max_requests: Some(requests),
        burst_size: 0,
        unlimited: false,
        valid_from: None,
        valid_until: NEXT_YEAR,
        reason: String::new(),
    }
}

pub fn client_draft(tier: &str) -> ClientDraft {
    ClientDraft { tier: Some(tier.to_owned()), ..ClientDraft::default() }
}

pub fn rule(rule_id: &str, to: impl Into<Option<RuleDraft>>, expect: Precondition) -> Edit {
    Edit::Rule { namespace: NAMESPACE.to_owned(), rule_id: rule_id.to_owned(), to: to.into(), expect }
}

pub fn overriding(override_id: &str, to: impl Into<Option<OverrideDraft>>) -> Edit {
    let (namespace, override_id) = (NAMESPACE.to_owned(), override_id.to_owned());
    Edit::Override { namespace, override_id, to: to.into(), expect: Precondition::Anything }
}

pub fn client(client_key: &str, to: impl Into<Option<ClientDraft>>) -> Edit {
    let (namespace, client_key) = (NAMESPACE.to_owned(), client_key.to_owned());
    Edit::Client { namespace, client_key, to: to.into(), expect: Precondition::Anything }
}

pub fn change_set(edits: impl IntoIterator<Item = Edit>) -> ChangeSet {
    let edits = edits.into_iter().collect();
    ChangeSet {
        edits,
        author: author(),
        action: "test".to_owned(),
        dry_run: false,
        idempotency_key: None,
        dependents: Dependents::Delete,
        file_rules: Vec::new(),
        file_plans: Vec::new(),
    }
}

pub async fn apply(control: &Control, edits: impl IntoIterator<Item = Edit>) -> AppliedChanges {
    control.apply(&change_set(edits)).await.unwrap()
}

/// How long to retry on a starved machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Edits per change set of [`seed`].
const SEEDED: usize = 250;

/// Retries an idempotent operation while the database does not answer in time, as callers are told to do.
pub async fn patiently<T>(operation: impl AsyncFn() -> Result<T, Error>) -> T {
    let started = tokio::time::Instant::now();
    loop {
        match operation().await {
            Err(Error::Unavailable(_)) if started.elapsed() < PATIENCE => {}
            done => return done.unwrap(),
        }
    }
}

/// Applies many idempotent edits, in small change sets.
pub async fn seed(control: &Control, edits: impl IntoIterator<Item = Edit>) {
    let edits: Vec<Edit> = edits.into_iter().collect();
    for chunk in edits.chunks(SEEDED) {
        let changes = change_set(chunk.to_vec());
        patiently(async || control.apply(&changes).await).await;
    }
}

/// The errors of an invalid change set.
pub async fn faults(control: &Control, edits: impl IntoIterator<Item = Edit>) -> Vec<FieldError> {
    match control.apply(&change_set(edits)).await {
        Err(Error::Invalid(faults)) => faults,
        other => panic!("{other:?}"),
    }
}

/// Code and field of each error.
pub async fn refused(control: &Control, edits: impl IntoIterator<Item = Edit>) -> Vec<(String, String)> {
    faults(control, edits).await.into_iter().map(|fault| (fault.code, fault.field)).collect()
}
