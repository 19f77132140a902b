//! Who changed what, and the generations that this made.

use serde_json::Value;

use super::{Control, not_yet};
use crate::{Change, Instant, Kind, Listing, Page, Result};

/// Which rows of the audit. What is `None` is not asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of these namespaces; what belongs to none (tokens, the mode) only without this.
    pub namespaces: Option<Vec<String>>,
    /// About this kind of thing.
    pub kind: Option<Kind>,
    /// About the thing of this id.
    pub id: Option<String>,
    /// By this author.
    pub author: Option<String>,
    /// Not before.
    pub from: Option<Instant>,
    /// Before.
    pub to: Option<Instant>,
}

/// One row of the audit. Rows are never changed; each carries a hash over itself and the row before.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRecord {
    /// Counts up from 1, without gaps.
    pub number: i64,
    /// The generation that the change made, or that was in force.
    pub generation: i64,
    /// When.
    pub at: Instant,
    /// Who: a token's id, or `cli`, or `node`.
    pub author: String,
    /// The name of that token then.
    pub author_name: String,
    /// What for.
    pub action: String,
    /// What kind of thing was changed.
    pub kind: Kind,
    /// Whose; empty for what belongs to no namespace.
    pub namespace: String,
    /// Its id.
    pub id: String,
    /// The record before.
    pub before: Option<Value>,
    /// The record after.
    pub after: Option<Value>,
    /// SHA-256 over this row and the hash before, in hex.
    pub hash: String,
}

/// One generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationRecord {
    /// Its number.
    pub generation: i64,
    /// When.
    pub at: Instant,
    /// Who made it.
    pub author: String,
    /// The name of that token then.
    pub author_name: String,
    /// What for.
    pub action: String,
    /// How many things it changed.
    pub changes: i64,
}

/// What came of checking the chain of hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Rows that were looked at.
    pub rows: i64,
    /// The first row that is not what it was, or that follows a missing one.
    pub broken_at: Option<i64>,
}

impl Control {
    /// Rows of the audit, the latest first.
    pub async fn audit(&self, _filter: &AuditFilter, _page: &Page) -> Result<Listing<AuditRecord>> {
        not_yet()
    }

    /// Walks the whole chain.
    pub async fn verify_audit(&self) -> Result<Verified> {
        not_yet()
    }

    /// Generations, the latest first; of these namespaces, or all.
    pub async fn generations(&self, _namespaces: Option<&[String]>, _page: &Page) -> Result<Listing<GenerationRecord>> {
        not_yet()
    }

    /// What is different in generation `to` from generation `from`, which may be the later one.
    pub async fn diff(&self, _from: i64, _to: i64) -> Result<Vec<Change>> {
        not_yet()
    }
}
