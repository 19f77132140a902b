//! Names of new rules: letters, digits, `.`, `_`, `-`, and unique except for case.
//!
//! Names from before this restriction stay valid: their rows are loaded and may be changed, and names in the audit may
//! return, or a rollback could not restore them.

use std::collections::{BTreeMap, HashMap};

use tollgate_rules::problem::quote;

use super::check::EditErrors;
use super::{ChangePlan, RecordKey};
use crate::db::{Sql, sql};
use crate::error::field_error;
use crate::record::document;
use crate::write_tx::WriteTx;
use crate::{RecordKind, Result};

/// Most ids that one statement looks up.
const CHUNK: usize = 500;

impl ChangePlan {
    /// Validates ids and names that are new.
    pub(super) async fn validate_names(&self, errors: &mut EditErrors, write: &mut WriteTx) -> Result<()> {
        let mut fresh: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (key, row) in self.rules.changed() {
            let Some(row) = row else { continue };
            let before = self.rules.original(key);
            let new_id = before.is_none().then_some(("rule_id", key.1.as_str()));
            let new_name = before.is_none_or(|before| before.name() != row.name()).then_some(("name", row.name()));
            let fresh_ones = new_id.into_iter().chain(new_name.filter(|(_, name)| *name != key.1));
            let bad: Vec<_> = fresh_ones.filter_map(|(field, name)| document::bad_rule_name(field, name)).collect();
            if bad.is_empty() && before.is_none() {
                fresh.entry(&key.0).or_default().push(&key.1);
            }
            // A name that the audit knows is restored by a rollback and is not new.
            if !bad.is_empty() && (before.is_some() || !was_known(key, write).await?) {
                bad.into_iter().for_each(|fault| errors.add(RecordKind::Rule, key, fault));
            }
        }
        for (namespace, ids) in fresh {
            self.validate_case(namespace, &ids, errors, write).await?;
        }
        Ok(())
    }

    /// Refuses ids that differ from another only in case: people and file systems confuse them.
    async fn validate_case(
        &self,
        namespace: &str,
        ids: &[&str],
        errors: &mut EditErrors,
        write: &mut WriteTx,
    ) -> Result<()> {
        let mut taken: HashMap<String, String> = HashMap::new();
        for chunk in ids.chunks(CHUNK) {
            // Uses the index of migration 4. Without the collation PostgreSQL folds by locale, where `I` may not become
            // `i`.
            let folded = match write.tx.is_postgres() {
                true => " WHERE namespace = ? AND lower(rule_id COLLATE \"C\") IN (",
                false => " WHERE namespace = ? AND lower(rule_id) IN (",
            };
            let mut sql = Sql::new("SELECT rule_id FROM rate_limit_rules", vec![]);
            let lower = chunk.iter().map(|id| vec![id.to_ascii_lowercase().into()]);
            sql.and(folded, [namespace.into()]);
            sql.and_listed("", "?", ")", lower);
            for row in write.tx.all(sql).await? {
                let id: String = row.get(0)?;
                let key = (namespace.to_owned(), id.clone());
                if !self.rules.is_changed(&key) || self.rules.get(&key).is_some() {
                    taken.insert(id.to_ascii_lowercase(), id);
                }
            }
        }
        for id in ids {
            let first = taken.entry(id.to_ascii_lowercase()).or_insert_with(|| (*id).to_owned());
            if first != id {
                let message =
                    format!("{} differs from the rule {} only in upper and lower case", quote(id), quote(first));
                let fault = field_error("rule_id", "duplicate-name", &message, "change that rule, or use another id");
                errors.add(RecordKind::Rule, &(namespace.to_owned(), (*id).to_owned()), fault);
            }
        }
        Ok(())
    }
}

/// True if the audit knows a rule of that id.
async fn was_known(key: &RecordKey, write: &mut WriteTx) -> Result<bool> {
    let known = sql!("SELECT 1 FROM audit WHERE id = $1 AND kind = 'rule' AND namespace = $2 LIMIT 1", &key.1, &key.0);
    Ok(write.tx.one(known).await?.is_some())
}
