//! Penalties that are in force, as nodes wrote them: listed, and lifted.

use super::Control;
use crate::db::{SqlRow, Tx, sql};
use crate::edit::Change;
use crate::write_tx::WriteTx;
use crate::{Author, Error, Instant, Listing, Page, RecordKind, Result, page};
use serde_json::{Value, json};

/// A penalty that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BegunPenalty {
    /// The bucket whose denials brought it, in hex: it has one penalty at a time.
    pub bucket: String,
    /// The identity that the store keeps it under.
    pub identity: i64,
    /// The process that has it in its memory, as `NAME@ADDRESS`; empty if all nodes share it.
    pub node: String,
    /// The namespace of the rule.
    pub namespace: String,
    /// The rule.
    pub rule_id: String,
    /// The client.
    pub client_key: String,
    /// How many are remembered of it, this one included.
    pub number: i64,
    /// When it began.
    pub begun_at: Instant,
    /// When it ends.
    pub ends_at: Instant,
}

/// Which penalties are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PenaltyFilter {
    /// Of these namespaces; `None` for all.
    pub namespaces: Option<Vec<String>>,
    /// Of a client under any of these names; `None` for all.
    pub client_keys: Option<Vec<String>>,
    /// Of this rule.
    pub rule_id: Option<String>,
}

impl BegunPenalty {
    /// The representation in the API and the audit.
    pub fn json(&self) -> Value {
        json!({
            "penalty_id": self.bucket,
            "namespace": self.namespace,
            "rule_id": self.rule_id,
            "client_key": self.client_key,
            "number": self.number,
            "node": Some(&self.node).filter(|node| !node.is_empty()),
            "begun_at": self.begun_at.to_string(),
            "ends_at": self.ends_at.to_string(),
        })
    }
}

impl Control {
    /// Writes penalties; a later one of the same bucket replaces the earlier.
    pub async fn record_penalties(&self, penalties: &[BegunPenalty]) -> Result<()> {
        let mut penalties = penalties.to_vec();
        penalties.sort_by(|one, other| one.bucket.cmp(&other.bucket)); // the same order on all nodes prevents deadlocks
        let record = async move |tx: &mut Tx| {
            for penalty in &penalties {
                tx.run(sql!(
                    "INSERT INTO rate_limit_penalties (bucket, identity, node, namespace, rule_id, client_key, number, \
                     begun_at, ends_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (bucket, node) \
                     DO UPDATE SET identity = excluded.identity, namespace = excluded.namespace, \
                     rule_id = excluded.rule_id, client_key = excluded.client_key, number = excluded.number, \
                     begun_at = excluded.begun_at, ends_at = excluded.ends_at",
                    &penalty.bucket,
                    penalty.identity,
                    &penalty.node,
                    &penalty.namespace,
                    &penalty.rule_id,
                    &penalty.client_key.replace('\0', "\u{fffd}"),
                    penalty.number,
                    penalty.begun_at,
                    penalty.ends_at,
                ))
                .await?;
            }
            Ok(())
        };
        self.write_unaudited(record).await
    }

    /// Penalties that have not ended, by bucket.
    pub async fn penalties(&self, filter: &PenaltyFilter, now: Instant, page: &Page) -> Result<Listing<BegunPenalty>> {
        let (filter, page) = (filter.clone(), page.clone());
        self.read(async move |tx| {
            let mut query = sql!(SELECT);
            query.and(" WHERE ends_at > ?", [now.into()]);
            query.and_in("namespace", filter.namespaces.as_deref());
            query.and_in("client_key", filter.client_keys.as_deref());
            query.and_if(" AND rule_id = ?", filter.rule_id.as_deref());
            if let Some((bucket, node)) = page.after_key()? {
                let text = |bytes| String::from_utf8(bytes).unwrap_or_default();
                query.and(" AND (bucket, node) > (?, ?)", [text(bucket).into(), text(node).into()]);
            }
            query.and(" ORDER BY bucket, node LIMIT ?", [i64::try_from(page.limit() + 1).unwrap_or(1).into()]);
            let mut entries = tx.all(query).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
            let more = entries.len() > page.limit();
            entries.truncate(page.limit());
            let next = entries.last().filter(|_| more).map(|last| page::cursor(&json!([last.bucket, last.node])));
            Ok(Listing { entries, next })
        })
        .await
    }

    /// The penalties of a bucket that have not ended, one for each node that has one; at least one.
    pub async fn penalties_of(&self, namespace: &str, bucket: &str, now: Instant) -> Result<Vec<BegunPenalty>> {
        let (namespace, bucket) = (namespace.to_owned(), bucket.to_owned());
        self.read(async move |tx| find(&namespace, &bucket, now, tx).await).await
    }

    /// Deletes a penalty that its node has lifted, with an audit row. Those of other nodes stay.
    pub async fn lift_penalty(&self, lifted: &BegunPenalty, author: &Author) -> Result<()> {
        let lifted = lifted.clone();
        let lift = async move |write: &mut WriteTx| {
            let BegunPenalty { bucket, node, namespace, .. } = &lifted;
            let delete = sql!(
                "DELETE FROM rate_limit_penalties WHERE bucket = $1 AND node = $2 AND namespace = $3",
                bucket,
                node,
                namespace
            );
            if write.tx.run(delete).await? == 0 {
                return Err(not_found(namespace, bucket));
            }
            let (namespace, id, before) = (namespace.clone(), bucket.clone(), Some(lifted.json()));
            write.record(Change { kind: RecordKind::Penalty, namespace, id, before, after: None });
            Ok(())
        };
        self.write(author, "lift", lift).await.map(|((), _)| ())
    }

    /// Ends the penalties that a node had in its memory when an earlier process of it ended.
    pub async fn end_penalties_of(&self, node: &str, now: Instant) -> Result<u64> {
        let node = node.to_owned();
        let end = async move |tx: &mut Tx| {
            let update =
                sql!("UPDATE rate_limit_penalties SET ends_at = $1 WHERE node = $2 AND ends_at > $1", now, &node);
            tx.run(update).await
        };
        self.write_unaudited(end).await
    }
}

const SELECT: &str = "SELECT bucket, identity, node, namespace, rule_id, client_key, number, begun_at, ends_at \
                      FROM rate_limit_penalties";

async fn find(namespace: &str, bucket: &str, now: Instant, tx: &mut Tx) -> Result<Vec<BegunPenalty>> {
    let mut query = sql!(SELECT);
    query.and(" WHERE namespace = ? AND bucket = ? AND ends_at > ?", [namespace.into(), bucket.into(), now.into()]);
    query.and(" ORDER BY node", []);
    let found = tx.all(query).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    if found.is_empty() { Err(not_found(namespace, bucket)) } else { Ok(found) }
}

fn not_found(namespace: &str, bucket: &str) -> Error {
    Error::NotFound(format!("penalty {bucket} in the namespace {namespace}"))
}

fn read(row: &SqlRow) -> Result<BegunPenalty> {
    Ok(BegunPenalty {
        bucket: row.get(0)?,
        identity: row.get(1)?,
        node: row.get(2)?,
        namespace: row.get(3)?,
        rule_id: row.get(4)?,
        client_key: row.lossy_text(5)?,
        number: row.get(6)?,
        begun_at: row.get(7)?,
        ends_at: row.get(8)?,
    })
}
