//! The rule that a misspelt name in an override, a grant or a switch may mean.

use std::collections::BTreeMap;

use tollgate_rules::nearest;

use crate::db::sql;
use crate::write_tx::WriteTx;
use crate::{ChangeSet, Edit, Error, Result};

/// Most names of rules among which the nearest to a misspelt one is looked for.
const NAMES_MAX: i64 = 1_000;
/// Most names that are listed when none is near.
const LISTED_MAX: usize = 8;

/// Names of rules by namespace, read when one is misspelt.
pub(super) struct RuleSuggestions<'a> {
    change_set: &'a ChangeSet,
    names: BTreeMap<String, Vec<String>>,
}

impl<'a> RuleSuggestions<'a> {
    pub(super) fn new(change_set: &'a ChangeSet) -> RuleSuggestions<'a> {
        RuleSuggestions { change_set, names: BTreeMap::new() }
    }

    /// What to write in place of a name: a rule of the database, or of those of files that the change set brings along.
    pub(super) async fn help(&mut self, namespace: &str, name: &str, write: &mut WriteTx) -> Result<String> {
        let names = self.names(namespace, write).await?;
        Ok(match nearest(name, names.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if names.is_empty() => "there is no rule with a name in this namespace".to_owned(),
            None => {
                let listed = names.get(..names.len().min(LISTED_MAX)).unwrap_or_default().join(", ");
                let more = if names.len() > LISTED_MAX { ", …" } else { "" };
                format!("rules of this namespace: {listed}{more}")
            }
        })
    }

    async fn names(&mut self, namespace: &str, write: &mut WriteTx) -> Result<&[String]> {
        if !self.names.contains_key(namespace) {
            let names = self.read(namespace, write).await?;
            self.names.insert(namespace.to_owned(), names);
        }
        Ok(self.names.get(namespace).map_or(&[][..], Vec::as_slice))
    }

    async fn read(&self, namespace: &str, write: &mut WriteTx) -> Result<Vec<String>> {
        let rows = sql!("SELECT rule_id FROM rate_limit_rules WHERE namespace = $1 LIMIT $2", namespace, NAMES_MAX);
        let mut names = Vec::new();
        for row in write.tx.all(rows).await? {
            names.push(row.lossy_text(0)?);
        }
        let in_files = self.change_set.file_rules.iter().filter(|(whose, _)| whose == namespace);
        names.extend(in_files.filter_map(|(_, spec)| spec.name.clone()));
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}

/// What a switch of a rule that does not exist is refused with.
pub(super) fn unknown_rule(namespace: &str, rule_id: &str) -> Error {
    Error::NotFound(format!("rule {rule_id} in the namespace {namespace}"))
}

/// The same error, with the name that may be meant if it is about a switch.
pub(super) async fn with_nearest(error: Error, change_set: &ChangeSet, write: &mut WriteTx) -> Error {
    let named = change_set.edits.iter().find_map(|edit| match edit {
        Edit::RuleMode { namespace, rule_id, to: Some(_), .. } => {
            Some((namespace, rule_id)).filter(|(namespace, rule_id)| unknown_rule(namespace, rule_id) == error)
        }
        _ => None,
    });
    let Some((namespace, rule_id)) = named else { return error };
    let mut suggestions = RuleSuggestions::new(change_set);
    let names = suggestions.names(namespace, write).await.unwrap_or_default();
    match (nearest(rule_id, names.iter().map(String::as_str)), error) {
        (Some(meant), Error::NotFound(what)) => Error::NotFound(format!("{what} (did you mean `{meant}`?)")),
        (_, error) => error,
    }
}
