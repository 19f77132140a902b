//! Buckets of a shared store as text, from the JSON of `tollgate store keys`.

use serde_json::Value;
use tollgate_core::Span;

use super::explanation::{heading, key_text, labelled, limit_text, list, number, string};
use super::{Palette, human_duration};

/// A rule and its buckets in the store, for one client.
pub fn stored_text(rule: &Value, palette: Palette) -> String {
    let mut text = format!("{}\n", heading(rule, palette));
    let mut add = |label: &str, value: &str| text.push_str(&labelled(label, value, palette));
    if let Some(because) = string(rule, "because") {
        add("no key", because);
        return text;
    }
    add("key", &key_text(rule));
    let assumed: Vec<&str> = list(rule, "assumed").filter_map(Value::as_str).collect();
    if !assumed.is_empty() {
        add("assumed", &format!("requests match its {}, which was not given", assumed.join(" and ")));
    }
    add("limit", &limit_text(rule));
    for bucket in list(rule, "buckets") {
        let slot = number(bucket, "slot")
            .map(|slot| format!(" in slot {slot} on {}", string(bucket, "server").unwrap_or("?")));
        add("store", &format!("{}{}", string(bucket, "store_key").unwrap_or("?"), slot.unwrap_or_default()));
        add("state", &state_text(bucket, string(rule, "consistency").unwrap_or_default()));
        if exists(bucket) {
            let ttl = number(bucket, "ttl_ms").map(|millis| human_duration(Span::from_millis(millis)));
            add("ttl", &ttl.unwrap_or_else(|| "none: the key never expires".to_owned()));
        }
    }
    text
}

fn exists(bucket: &Value) -> bool {
    bucket.get("exists").and_then(Value::as_bool).unwrap_or(false)
}

fn state_text(bucket: &Value, consistency: &str) -> String {
    let count = |name: &str| number(bucket, name).unwrap_or(0);
    let left = format!("{} of {} left", count("remaining"), count("limit"));
    if !exists(bucket) {
        return format!("no key: unused, {left}");
    }
    let Some(state) = bucket.get("state").filter(|state| state.is_object()) else {
        return "not a bucket of this algorithm: the next decision replaces it".to_owned();
    };
    let units = |name: &str| number(state, name).unwrap_or(0);
    let time = |name: &str| string(state, name).unwrap_or("?");
    let has = |name: &str| state.get(name).is_some();
    let decoded = match () {
        () if has("tat") => format!("full again at {} (TAT)", time("tat")),
        () if has("previous") => {
            let end = time("window_end");
            format!("{} in the window until {end}, {} in the one before", units("current"), units("previous"))
        }
        () if has("count") => format!("{} in the window until {}", units("count"), time("window_end")),
        () if has("entries") && units("entries") == 0 => "0 log entries within the window".to_owned(),
        () if has("entries") => {
            format!("{} log entries from {} to {}", units("entries"), time("oldest"), time("newest"))
        }
        () if units("held") == 0 => "0 slots held".to_owned(),
        () => format!("{} slots held, the first expires at {}", units("held"), time("first_expiry")),
    };
    let shared = match consistency {
        "leased" => " (leases of nodes count as used)",
        "async" => " (nodes report what they admitted later)",
        _ => "",
    };
    format!("{left}: {decoded}{shared}")
}
