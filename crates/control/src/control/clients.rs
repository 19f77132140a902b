//! Queries of clients and namespaces.

use std::collections::BTreeMap;

use super::Control;
use crate::db::{Sql, Tx, sql};
use crate::record::{ClientRecord, NamespaceDraft, NamespaceRow, StoredRecord};
use crate::{Listing, Page, Result};

/// Selects clients; `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFilter {
    /// In these namespaces.
    pub namespaces: Option<Vec<String>>,
    /// With this tier.
    pub tier: Option<String>,
    /// With this organisation.
    pub organisation: Option<String>,
    /// With this key prefix, taken literally.
    pub prefix: Option<String>,
}

impl Control {
    /// Clients, sorted by namespace and key.
    pub async fn clients(&self, filter: &ClientFilter, page: &Page) -> Result<Listing<ClientRecord>> {
        let mut sql = Sql::new(ClientRecord::TABLE.select, vec![]);
        sql.and(" WHERE TRUE", []);
        sql.and_in("namespace", filter.namespaces.as_deref());
        sql.and_if(" AND tier = ?", filter.tier.as_ref());
        sql.and_if(" AND organisation = ?", filter.organisation.as_ref());
        if let Some(prefix) = &filter.prefix {
            // Keys sort by bytes, so that keys with a prefix are a range: no LIKE, and nothing to escape.
            sql.and(" AND client_key >= ?", [prefix.into()]);
            sql.and_if(" AND client_key < ?", after_all_with(prefix));
        }
        self.list(sql, page).await
    }

    /// One client.
    pub async fn client(&self, namespace: &str, client_key: &str) -> Result<ClientRecord> {
        self.find(namespace, client_key).await
    }

    /// Number of rules in the database per namespace; namespaces without rules are left out.
    pub async fn rules_by_namespace(&self) -> Result<BTreeMap<String, i64>> {
        self.read(async |tx| {
            let rows = tx.all(sql!("SELECT namespace, COUNT(*) FROM rate_limit_rules GROUP BY namespace")).await?;
            rows.iter().map(|row| Ok((row.lossy_text(0)?, row.get(1)?))).collect()
        })
        .await
    }

    /// Every namespace with rules, overrides, clients or settings, and its settings.
    pub async fn namespaces(&self) -> Result<Vec<(String, NamespaceDraft)>> {
        self.read(async |tx| namespaces(tx).await).await
    }
}

/// Every namespace with any rows. Unreadable settings are logged and replaced by the defaults.
pub(super) async fn namespaces(tx: &mut Tx) -> Result<Vec<(String, NamespaceDraft)>> {
    // Clients, overrides and grants are many, namespaces few: each recursion skips to the next namespace instead of reading all
    // rows. Overrides and grants count too, because their rules may be in files.
    let names = sql!(
        "WITH RECURSIVE leap (namespace) AS (SELECT MIN(namespace) FROM clients UNION ALL \
         SELECT (SELECT MIN(namespace) FROM clients WHERE namespace > leap.namespace) FROM leap \
         WHERE leap.namespace IS NOT NULL), \
         over (namespace) AS (SELECT MIN(namespace) FROM rate_limit_overrides UNION ALL \
         SELECT (SELECT MIN(namespace) FROM rate_limit_overrides WHERE namespace > over.namespace) FROM over \
         WHERE over.namespace IS NOT NULL), \
         granted (namespace) AS (SELECT MIN(namespace) FROM rate_limit_grants UNION ALL \
         SELECT (SELECT MIN(namespace) FROM rate_limit_grants WHERE namespace > granted.namespace) FROM granted \
         WHERE granted.namespace IS NOT NULL) \
         SELECT namespace FROM leap WHERE namespace IS NOT NULL UNION SELECT namespace FROM rate_limit_rules \
         UNION SELECT namespace FROM over WHERE namespace IS NOT NULL \
         UNION SELECT namespace FROM rate_limit_plans \
         UNION SELECT namespace FROM granted WHERE namespace IS NOT NULL \
         UNION SELECT namespace FROM rate_limit_namespaces ORDER BY namespace"
    );
    let mut namespaces = Vec::new();
    for row in tx.all(names).await? {
        // A namespace whose name is not text: its rows are quarantined one by one.
        namespaces.extend(row.valid_text(0)?.map(|name| (name, NamespaceDraft::default())));
    }
    for row in tx.all(Sql::new(NamespaceRow::TABLE.select, vec![])).await? {
        let name = row.lossy_text(0)?;
        match (NamespaceRow::read(&row), namespaces.iter_mut().find(|(other, _)| *other == name)) {
            (Ok(row), Some((_, draft))) => *draft = row.draft,
            (Err(error), _) => {
                tracing::warn!(namespace = name, "unreadable settings replaced by the defaults: {error}")
            }
            (Ok(_), None) => {}
        }
    }
    Ok(namespaces)
}

/// The first text after all texts with this prefix; `None` if there is none.
fn after_all_with(prefix: &str) -> Option<String> {
    let mut letters: Vec<char> = prefix.chars().collect();
    while let Some(last) = letters.pop() {
        // Skips the surrogates, which are not characters.
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            letters.push(next);
            return Some(letters.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::after_all_with;

    #[test]
    fn a_prefix_ends_before_the_next_text() {
        for (prefix, end) in [
            ("", None),
            ("a", Some("b")),
            ("user:%", Some("user:&")),
            ("\u{d7ff}", Some("\u{e000}")),
            ("a\u{10ffff}", Some("b")),
            ("\u{10ffff}", None),
        ] {
            assert_eq!(after_all_with(prefix).as_deref(), end, "{prefix:?}");
        }
    }
}
