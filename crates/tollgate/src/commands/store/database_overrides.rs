//! Overrides in the database of the nodes, read through their admin API.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;
use tollgate_rules::{OverrideSpec, RuleFile};

use crate::admin::ServerArgs;
use crate::when;

/// Overrides per page.
const PAGE: &str = "1000";

/// The admin listener of the nodes.
#[derive(Clone, Debug, clap::Args)]
pub struct DatabaseOverrideArgs {
    /// The admin listener of a node, for the overrides in its database: http://HOST:PORT, https://HOST:PORT, unix:/path
    #[arg(long, value_name = "URL", env = "TOLLGATE_URL", hide_env_values = true)]
    admin_url: Option<String>,
    /// Send the first token in this file to the admin listener [or env: TOLLGATE_TOKEN]
    #[arg(long, value_name = "FILE", requires = "admin_url")]
    admin_token_file: Option<PathBuf>,
}

impl DatabaseOverrideArgs {
    /// Adds the overrides of the database to a rules file; they win over those of the file for the same client and rule.
    pub fn add_to(&self, file: &mut RuleFile) -> Result<()> {
        let Some(url) = self.admin_url.as_deref().filter(|url| !url.is_empty()) else { return Ok(()) };
        let found = self.fetch(url, &file.namespace).context("cannot read the overrides of the nodes")?;
        let names: HashSet<&str> = file.rules.iter().filter_map(|rule| rule.name.as_deref()).collect();
        let own: Vec<OverrideSpec> =
            found.into_iter().filter(|own| names.contains(own.rule.as_str()) || own.is_of_every_rule()).collect();
        let replaced: HashSet<(&str, &str)> =
            own.iter().map(|own| (own.client_key.as_str(), own.rule.as_str())).collect();
        file.overrides.retain(|old| !replaced.contains(&(old.client_key.as_str(), old.rule.as_str())));
        file.overrides.extend(own.iter().cloned());
        Ok(())
    }

    /// All overrides of a namespace that hold now.
    fn fetch(&self, url: &str, namespace: &str) -> Result<Vec<OverrideSpec>> {
        let mut admin = ServerArgs::at(url, self.admin_token_file.clone()).admin()?;
        let (mut found, mut cursor): (Vec<OverrideSpec>, Option<String>) = (Vec::new(), None);
        loop {
            let call = admin
                .get(&["v1", "overrides"])
                .query("namespace", namespace)
                .query("active", "true")
                .query("limit", PAGE);
            let call = match &cursor {
                Some(cursor) => call.query("cursor", cursor),
                None => call,
            };
            let page = admin.send(&call)?.json()?;
            let overrides = page.get("overrides").and_then(Value::as_array).into_iter().flatten();
            found.extend(overrides.filter_map(spec));
            cursor = page.get("next_cursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() {
                return Ok(found);
            }
        }
    }
}

fn spec(json: &Value) -> Option<OverrideSpec> {
    let text = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
    let nanos = |name: &str| text(name).and_then(|at| when::instant_or_seconds(&at).ok()).map(|at| at.nanos());
    let number = |name: &str| json.get(name).and_then(Value::as_u64);
    Some(OverrideSpec {
        client_key: text("client_key")?,
        rule: text("rule_id")?,
        requests: number("max_requests"),
        burst: number("burst_size").filter(|burst| *burst > 0),
        unlimited: json.get("unlimited").and_then(Value::as_bool).unwrap_or(false),
        valid_from_ns: nanos("valid_from"),
        valid_until_ns: nanos("valid_until"),
        ..OverrideSpec::default()
    })
}
