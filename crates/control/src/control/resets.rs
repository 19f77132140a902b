//! The audit of counts that are reset in the store.

use serde_json::{Value, json};

use super::Control;
use crate::edit::Change;
use crate::write_tx::WriteTx;
use crate::{Author, RecordKind, Result};

impl Control {
    /// Writes an audit row about a reset, before the store is told: no reset goes without one. `client` is shown as
    /// clients are at rest; without a rule, the counts of all rules are reset.
    pub async fn record_reset(
        &self,
        namespace: &str,
        client: &str,
        rule: Option<&str>,
        reason: Option<&str>,
        author: &Author,
    ) -> Result<()> {
        let after: Value = json!({ "client_key": client, "rule_id": rule, "reason": reason });
        let (namespace, id) = (namespace.to_owned(), client.to_owned());
        let change = Change { kind: RecordKind::Counter, namespace, id, before: None, after: Some(after) };
        let record = async move |write: &mut WriteTx| {
            write.record(change.clone());
            Ok(())
        };
        Box::pin(self.write(author, "reset", record)).await.map(drop)
    }
}
