//! The fields of a rule as flags.

use anyhow::{Result, anyhow, bail};
use serde_json::{Map, Value, json};

/// The most common fields of a rule; a file supports all fields.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Rule")]
pub struct FieldArgs {
    /// Match this endpoint: "POST /api/*", "/users/{id}"; may be repeated: any of them
    #[arg(long, value_name = "PATTERN")]
    endpoint: Vec<String>,
    /// Match this tier; may be repeated: any of them
    #[arg(long, value_name = "TIER")]
    tier: Vec<String>,
    /// Match one client: user:42, key:abc
    #[arg(long, value_name = "KEY")]
    client_key: Option<String>,
    /// Match another attribute: ip=10.0.0.0/8, org=acme, a custom attribute
    #[arg(long = "match", value_name = "NAME=PATTERN", value_parser = condition)]
    conditions: Vec<(String, String)>,
    /// Key of the buckets: user_id, api_key, ip, "user_id:endpoint", global
    #[arg(long, value_name = "KEY")]
    key_by: Option<String>,
    /// Requests per window; for concurrency, number of slots
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Window: 1s, 250ms, 5m, 1h, 30d
    #[arg(long, value_name = "DURATION")]
    window: Option<String>,
    /// Algorithm
    #[arg(long, value_name = "NAME", value_parser = ALGORITHMS)]
    algorithm: Option<String>,
    /// Burst size
    #[arg(long, value_name = "N")]
    burst: Option<u64>,
    /// Cost of a request
    #[arg(long, value_name = "N")]
    cost: Option<u64>,
    /// Mode
    #[arg(long, value_name = "MODE", value_parser = ["enforce", "shadow", "off"])]
    mode: Option<String>,
    /// How nodes share the limit
    #[arg(long, value_name = "HOW", value_parser = ["exact", "leased", "async", "local"])]
    consistency: Option<String>,
    /// Decision while the store is unavailable
    #[arg(long, value_name = "WHAT", value_parser = ["allow", "deny", "local"])]
    on_fail: Option<String>,
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Enable the rule
    #[arg(long, conflicts_with = "disabled")]
    enabled: bool,
    /// Disable the rule, without deleting it
    #[arg(long)]
    disabled: bool,
}

const ALGORITHMS: [&str; 8] = [
    "token_bucket",
    "gcra",
    "leaky_bucket",
    "fixed_window",
    "sliding_window",
    "sliding_window_log",
    "sliding_window_counter",
    "concurrency",
];

impl FieldArgs {
    /// The given fields, in the format of the admin API. `slots` is true for a concurrency rule, whose limit is in
    /// slots.
    pub fn fields(&self, slots: bool) -> Map<String, Value> {
        let slots = self.algorithm.as_deref().map_or(slots, |algorithm| algorithm == "concurrency");
        let mut matching = Map::new();
        put_list(&mut matching, "endpoint", &self.endpoint);
        put_list(&mut matching, "tier", &self.tier);
        put(&mut matching, "client_key", self.client_key.as_deref());
        for (name, pattern) in &self.conditions {
            let earlier = matching.remove(name).map(|earlier| earlier.as_array().cloned().unwrap_or(vec![earlier]));
            let patterns = earlier.into_iter().flatten().chain([pattern.as_str().into()]).collect::<Vec<Value>>();
            matching.insert(name.clone(), one_or_all(patterns));
        }
        let mut limit = Map::new();
        put(&mut limit, if slots { "slots" } else { "requests" }, self.limit);
        put(&mut limit, "window", self.window.as_deref());
        put(&mut limit, "algorithm", self.algorithm.as_deref());
        put(&mut limit, "burst", self.burst);
        let mut rule = Map::new();
        put(&mut rule, "match", Some(matching).filter(|map| !map.is_empty()));
        put(&mut rule, "key_by", self.key_by.as_deref());
        put(&mut rule, "limit", Some(limit).filter(|map| !map.is_empty()));
        put(&mut rule, "cost", self.cost);
        put(&mut rule, "mode", self.mode.as_deref());
        put(&mut rule, "consistency", self.consistency.as_deref());
        put(&mut rule, "on_fail", self.on_fail.as_deref());
        put(&mut rule, "description", self.description.as_deref());
        put(&mut rule, "enabled", (self.enabled || self.disabled).then_some(self.enabled));
        rule
    }
}

/// Adds fields to remove to a merge patch: `limit.burst` is `{"limit":{"burst":null}}`.
pub fn without(mut patch: Map<String, Value>, paths: &[String]) -> Result<Map<String, Value>> {
    for path in paths {
        let mut names: Vec<&str> = path.split('.').collect();
        let last = names.pop().unwrap_or_default();
        let mut inner = &mut patch;
        for name in names {
            let entry = inner.entry(name).or_insert_with(|| json!({}));
            inner = entry.as_object_mut().ok_or_else(|| anyhow!("--unset {path}: {name} is set as well"))?;
        }
        if last.is_empty() || inner.insert(last.to_owned(), Value::Null).is_some() {
            bail!("--unset {path}: name a field that is not set as well, such as limit.burst");
        }
    }
    Ok(patch)
}

fn put(map: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(name.to_owned(), value.into());
    }
}

fn put_list(map: &mut Map<String, Value>, name: &str, values: &[String]) {
    if !values.is_empty() {
        map.insert(name.to_owned(), one_or_all(values.iter().map(|value| value.as_str().into()).collect()));
    }
}

fn one_or_all(mut values: Vec<Value>) -> Value {
    match values.len() {
        1 => values.remove(0),
        _ => values.into(),
    }
}

fn condition(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, pattern)) if !name.is_empty() => Ok((name.to_owned(), pattern.to_owned())),
        _ => Err("write NAME=PATTERN, such as ip=10.0.0.0/8".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        fields: FieldArgs,
    }

    fn parsed(line: &[&str], slots: bool) -> Value {
        Line::parse_from([&["x"], line].concat()).fields.fields(slots).into()
    }

    #[test]
    fn flags_become_the_fields_of_a_rules_file() {
        let line = [
            "--endpoint",
            "POST /a",
            "--endpoint",
            "PUT /a",
            "--tier",
            "free",
            "--match",
            "ip=!10.0.0.0/8",
            "--key-by",
            "user_id",
            "--limit",
            "10",
            "--window",
            "1s",
            "--burst",
            "20",
            "--disabled",
            "--match",
            "ip=192.0.2.1",
        ];
        let expected = json!({
            "match": { "endpoint": ["POST /a", "PUT /a"], "tier": "free", "ip": ["!10.0.0.0/8", "192.0.2.1"] },
            "key_by": "user_id",
            "limit": { "requests": 10, "window": "1s", "burst": 20 },
            "enabled": false,
        });
        assert_eq!(parsed(&line, false), expected);
        assert_eq!(parsed(&[], false), json!({}));
    }

    #[test]
    fn a_limit_of_concurrency_counts_slots() {
        let created = parsed(&["--algorithm", "concurrency", "--limit", "5"], false);
        assert_eq!(created, json!({ "limit": { "algorithm": "concurrency", "slots": 5 } }));
        assert_eq!(parsed(&["--limit", "6"], true), json!({ "limit": { "slots": 6 } }));
        let changed = parsed(&["--algorithm", "gcra", "--limit", "6"], true);
        assert_eq!(changed, json!({ "limit": { "algorithm": "gcra", "requests": 6 } }));
    }

    #[test]
    fn unset_fields_are_null_in_the_patch() {
        let patch = parsed(&["--limit", "6"], false).as_object().cloned().unwrap();
        let paths = ["limit.burst".to_owned(), "description".to_owned()];
        let expected = json!({ "limit": { "requests": 6, "burst": null }, "description": null });
        assert_eq!(Value::from(without(patch.clone(), &paths).unwrap()), expected);
        for path in ["limit.requests", "limit.requests.x", ""] {
            assert!(without(patch.clone(), &[path.to_owned()]).is_err(), "{path}");
        }
    }
}
