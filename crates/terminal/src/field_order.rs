//! The order in which fields of rules are shown.

/// Conventional order of the fields of a rule and of its nested maps; other fields follow by name.
const FIELD_ORDER: [&str; 27] = [
    "rule_id",
    "client_key",
    "rule",
    "name",
    "description",
    "resource",
    "match",
    "key_by",
    "meter",
    "unmetered",
    "limit",
    "unlimited",
    "replaces",
    "requests",
    "amount",
    "window",
    "slots",
    "slot_ttl",
    "reserved",
    "reserved_for",
    "algorithm",
    "burst",
    "cost",
    "mode",
    "consistency",
    "on_fail",
    "enabled",
];

/// The position of a field in the conventional order.
pub fn rank(field: &str) -> usize {
    FIELD_ORDER.iter().position(|known| *known == field).unwrap_or(FIELD_ORDER.len())
}
