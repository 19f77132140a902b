//! Idempotency keys: a change set that is sent again gets the first response.

use aws_lc_rs::digest;
use serde_json::{Value, json};

use super::plan::key_of;
use crate::db::sql;
use crate::error::field_error;
use crate::hex::hex;
use crate::write_tx::WriteTx;
use crate::{Change, ChangeSet, Dependents, Edit, Error, Instant, Precondition, Result};

/// How long a response is kept.
const KEY_TTL_MICROS: i64 = 24 * 3600 * 1_000_000;
/// Longest key.
const KEY_BYTES_MAX: usize = 256;

/// The key of a change set, its author, and a digest of its edits.
pub(crate) struct IdempotencyKey {
    key: String,
    author: String,
    digest: String,
}

impl IdempotencyKey {
    /// The key of a change set; `None` without a key or in a dry run.
    pub(super) fn of(change_set: &ChangeSet) -> Result<Option<IdempotencyKey>> {
        let Some(key) = change_set.idempotency_key.clone().filter(|_| !change_set.dry_run) else { return Ok(None) };
        if key.is_empty() || key.len() > KEY_BYTES_MAX || key.chars().any(char::is_control) {
            let message = "the idempotency key cannot be used";
            let help = format!("send 1 to {KEY_BYTES_MAX} bytes without control characters");
            return Err(Error::Invalid(vec![field_error("idempotency_key", "bad-name", message, &help)]));
        }
        Ok(Some(IdempotencyKey { key, author: change_set.author.id.clone(), digest: digest(change_set) }))
    }

    /// The stored response to the same change set.
    pub(super) async fn find(&self, write: &mut WriteTx) -> Result<Option<ApplyResult>> {
        let too_old = Instant(write.at.0 - KEY_TTL_MICROS);
        write.tx.run(sql!("DELETE FROM idempotency_keys WHERE at < $1", too_old)).await?;
        let found =
            sql!("SELECT digest, answer FROM idempotency_keys WHERE author = $1 AND key = $2", &self.author, &self.key);
        let Some(row) = write.tx.one(found).await? else { return Ok(None) };
        if row.get::<String>(0)? != self.digest {
            return Err(Error::KeyReused);
        }
        let answer: Value = serde_json::from_str(&row.get::<String>(1)?).unwrap_or_default();
        let changes = answer.get("changes").and_then(Value::as_array).into_iter().flatten();
        let changes = changes.filter_map(Change::from_json).collect();
        Ok(Some(ApplyResult { changes, replayed: answer.get("generation").and_then(Value::as_i64).or(Some(0)) }))
    }

    /// Stores the response.
    pub(super) async fn keep(&self, generation: i64, changes: &[Change], write: &mut WriteTx) -> Result<()> {
        let changes: Vec<Value> = changes.iter().map(Change::json).collect();
        let answer = json!({ "generation": generation, "changes": changes }).to_string();
        let keep = sql!(
            "INSERT INTO idempotency_keys (author, key, digest, answer, at) VALUES ($1, $2, $3, $4, $5)",
            &self.author,
            &self.key,
            &self.digest,
            answer,
            write.at,
        );
        write.tx.run(keep).await.map(|_| ())
    }
}

/// The result of a change set.
pub(crate) struct ApplyResult {
    /// The changes, committed or not.
    pub(crate) changes: Vec<Change>,
    /// The generation of the first application, if this is a repetition.
    pub(crate) replayed: Option<i64>,
}

/// Digest of the edits. Action and author do not matter.
fn digest(change_set: &ChangeSet) -> String {
    let mut edits: Vec<Value> = change_set.edits.iter().map(wanted).collect();
    // Change sets of earlier versions keep their digest.
    edits.extend((change_set.dependents == Dependents::Keep).then(|| json!("keep dependents")));
    hex(digest::digest(&digest::SHA256, Value::Array(edits).to_string().as_bytes()).as_ref())
}

fn wanted(edit: &Edit) -> Value {
    let (kind, (namespace, id)) = key_of(edit);
    let (to, expect) = match edit {
        Edit::Rule { to, expect, .. } => {
            let draft = to.as_ref().map(|to| json!([to.name, to.document, to.enabled]));
            (draft, Some(*expect))
        }
        Edit::Override { to, expect, .. } => {
            let draft = to.as_ref().map(|to| {
                json!([
                    [to.client_key, to.rule_id, to.reason],
                    [to.max_requests, to.burst_size, to.valid_from.map(|at| at.0), to.valid_until.0],
                    to.unlimited,
                ])
            });
            (draft, Some(*expect))
        }
        Edit::Grant { to, expect, .. } => {
            let draft = to.as_ref().map(|to| {
                json!([
                    [to.client_key, to.rule_id, to.reason],
                    [Some(to.amount), to.valid_from.map(|at| at.0), to.valid_until.map(|at| at.0)],
                ])
            });
            (draft, Some(*expect))
        }
        Edit::RuleMode { to, expect, .. } => {
            let draft = to.as_ref().map(|to| json!([to.mode.name(), to.reason]));
            (draft, Some(*expect))
        }
        Edit::Client { to, expect, .. } => {
            let draft = to.as_ref().map(|to| match &to.plan {
                // As by earlier versions.
                None => json!([to.tier, to.organisation, to.attributes]),
                Some(plan) => json!([to.tier, to.organisation, to.attributes, plan]),
            });
            (draft, Some(*expect))
        }
        Edit::Plan { to, expect, .. } => {
            let draft = to.as_ref().map(|to| json!([to.extends, to.is_default, to.limits, to.description]));
            (draft, Some(*expect))
        }
        // Earlier versions had no precondition here: their digests stay the same.
        Edit::Namespace { to, expect, .. } => {
            (to.as_ref().map(|to| to.json()), Some(*expect).filter(|expect| *expect != Precondition::Anything))
        }
    };
    let expect = expect.map(|expect| match expect {
        Precondition::Anything => json!("anything"),
        Precondition::Absent => json!("absent"),
        Precondition::Present => json!("present"),
        Precondition::Version(version) => json!(version),
    });
    json!([kind.name(), namespace, id, to, expect])
}
