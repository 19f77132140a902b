//! Limits the number of patterns per namespace that can only be matched one by one.

use std::collections::BTreeMap;

use tollgate_rules::RuleSpec;
use tollgate_rules::check::{CROWD_MAX, crowded, wildcards};

use super::check::{EditErrors, split};
use super::{ChangePlan, RecordKey};
use crate::db::{Sql, SqlRow, sql};
use crate::record::{RuleRow, StoredRecord};
use crate::write_tx::WriteTx;
use crate::{FieldError, RecordKind, Result};

/// Upper bound of the wildcard patterns of a namespace: all stars except those that end a path (`/api/*`). The database
/// counts them, so that rules are read only where there are many.
const STARS: &str = "SELECT CAST(COALESCE(SUM(LENGTH(texts) - LENGTH(REPLACE(texts, '*', ''))), 0) AS BIGINT) FROM \
    (SELECT REPLACE(COALESCE(endpoint, '') || '\" ' || COALESCE(client_key, '') || COALESCE(CAST(\"match\" AS TEXT), ''), \
    '/*\"', '\"') AS texts FROM rate_limit_rules WHERE namespace = $1) AS patterns WHERE texts LIKE '%*%'";

impl ChangePlan {
    /// Refuses rules whose wildcard patterns exceed the limit together with the existing ones: nodes would leave rules
    /// out.
    pub(super) async fn validate_wildcards(&self, errors: &mut EditErrors, write: &mut WriteTx) -> Result<()> {
        let mut added: BTreeMap<&str, BTreeMap<&RecordKey, &RuleSpec>> = BTreeMap::new();
        for (key, row) in self.rules.changed() {
            let Some(spec) = self.specs.get(key).filter(|spec| row.is_some() && wildcards(spec) > 0) else { continue };
            let before = self.rules.original(key).and_then(|row| row.record().spec(&self.settings(&key.0)).ok());
            if before.is_none_or(|before| before.matches != spec.matches) {
                added.entry(&key.0).or_default().insert(key, spec);
            }
        }
        for (namespace, added) in added {
            let stars = match write.tx.one(sql!(STARS, namespace)).await? {
                Some(row) => usize::try_from(row.get::<i64>(0)?).unwrap_or(usize::MAX),
                None => 0,
            };
            let more: usize = added.values().map(|spec| wildcards(spec)).sum();
            if stars.saturating_add(more) <= CROWD_MAX {
                continue;
            }
            let others = self.others(namespace, &added, write).await?;
            let keys: Vec<&RecordKey> = added.keys().copied().collect();
            // New rules come last, so that an existing rule is not refused because of them.
            for problem in crowded(others.iter().chain(added.values().copied())) {
                let Some((place, rest)) = split("rules", &problem.field) else { continue };
                if let Some(key) = place.checked_sub(others.len()).and_then(|place| keys.get(place)) {
                    let field = rest.to_owned();
                    errors.add(RecordKind::Rule, key, FieldError { field, ..FieldError::from(problem) });
                }
            }
        }
        Ok(())
    }

    /// The rules of a namespace besides the added ones.
    async fn others(
        &self,
        namespace: &str,
        added: &BTreeMap<&RecordKey, &RuleSpec>,
        write: &mut WriteTx,
    ) -> Result<Vec<RuleSpec>> {
        let mut sql = Sql::new(RuleRow::TABLE.select, vec![]);
        sql.and(" WHERE namespace = ?", [namespace.into()]);
        let (settings, mut others) = (self.settings(namespace), Vec::new());
        let mut keep = |row: &RuleRow| others.extend(row.record().spec(&settings));
        let read = |row: SqlRow| {
            // An unreadable row is in quarantine and does not count.
            let Ok(rule) = RuleRow::read(&row) else { return Ok(()) };
            if !self.rules.is_changed(&(rule.namespace.clone(), rule.rule_id.clone())) {
                keep(&rule);
            }
            Ok(())
        };
        write.tx.each(sql, read).await?;
        let changed = self.rules.changed().filter(|(key, _)| key.0 == namespace && !added.contains_key(key));
        changed.filter_map(|(_, row)| row).for_each(&mut keep);
        Ok(others)
    }
}
