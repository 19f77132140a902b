//! What a rule from such a file says beyond what any rule says.

use super::{Metadata, Unit};

/// What belongs to a rule that came from an envoyproxy/ratelimit file: the field `envoy` of [`Rule`](crate::ruleset::Rule).
///
/// | wanted | where |
/// |---|---|
/// | reported name | [`name`](EnvoyRule::name) |
/// | requests per unit, unit | [`limit`](EnvoyRule::limit); of an [override](EnvoyRule::overrides): the request's own |
/// | unlimited | `rule.spec.unlimited`; the ruling then has no outcome |
/// | over the limit | `!outcome.allowed` of the ruling, also for shadow and quota rules, which never deny by themselves |
/// | shadow, quota | [`shadow_mode`](EnvoyRule::shadow_mode), [`quota_mode`](EnvoyRule::quota_mode) |
/// | statistics | [`stat_key`](EnvoyRule::stat_key) |
/// | metadata | [`metadata`](EnvoyRule::metadata) |
/// | no rule, unknown, replaced | no ruling for that request |
#[derive(Clone, Debug, Default)]
pub struct EnvoyRule {
    /// What callers are told: as written, with what would break out of a header's quotes replaced by `_`.
    pub name: Option<String>,
    /// Requests per unit, and the unit. `None` if unlimited, and of the rule that stands for the limits that requests
    /// bring along.
    pub limit: Option<(u32, Unit)>,
    /// It is the rule that stands for limits that requests bring along: one for each domain.
    pub overrides: bool,
    /// Reported as within the limit, whatever was counted.
    pub shadow_mode: bool,
    /// Refuses a request only if all of this kind that apply to it do.
    pub quota_mode: bool,
    /// Goes along with the answer when the request passes.
    pub metadata: Option<Metadata>,
    pub(crate) domain: String,
    /// The way from the first level to its own; empty for an override.
    pub(crate) levels: Vec<DescriptorLevel>,
    /// All levels by the request's values.
    pub(crate) detailed: bool,
}

/// One level on the way to a rule.
#[derive(Clone, Debug)]
pub(crate) struct DescriptorLevel {
    pub(crate) key: String,
    pub(crate) value: Option<String>,
    /// One counter for all values: the pattern stands for them.
    pub(crate) shared: bool,
    /// Statistics go by the request's value.
    pub(crate) by_value: bool,
}

impl EnvoyRule {
    /// Entries that lead to the rule, for people who want to try it.
    pub fn example(&self) -> impl Iterator<Item = (String, String)> {
        let filled = |pattern: &str| pattern.replace('*', "1");
        self.levels.iter().map(move |level| (filled(&level.key), filled(level.value.as_deref().unwrap_or("*"))))
    }

    /// Keys of the entries that lead to the rule, each with the value or pattern that the file asks for, if any.
    pub fn entries(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.levels.iter().map(|level| (level.key.as_str(), level.value.as_deref()))
    }

    /// Under which name that service keeps the rule's statistics: `<domain>.<key>[_<value>][.<nested>]`, with the
    /// request's values where the file asks for them. `entries` are the request's.
    pub fn stat_key(&self, entries: &[(&str, &str)]) -> String {
        let mut name = self.domain.clone();
        let mut add = |key: &str, value: &str| {
            name.push('.');
            name.push_str(key);
            if !value.is_empty() {
                name.push('_');
                name.push_str(value);
            }
        };
        if self.overrides {
            entries.iter().for_each(|(key, value)| add(key, value));
        }
        for (level, entry) in self.levels.iter().zip(entries) {
            let written = level.value.as_deref().unwrap_or_default();
            let by_value = (self.detailed || level.by_value) && !level.shared;
            add(&level.key, if by_value { entry.1 } else { written });
        }
        name
    }

    /// The name of the rule as that service prints it: its [`stat_key`](EnvoyRule::stat_key) with the values of the file.
    pub fn full_key(&self) -> String {
        let mut name = self.domain.clone();
        for DescriptorLevel { key, value, .. } in &self.levels {
            name.push('.');
            name.push_str(key);
            if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
                name.push('_');
                name.push_str(value);
            }
        }
        name
    }

    /// Whether [`stat_key`](EnvoyRule::stat_key) depends on what requests say: such names have no end, and whoever keeps
    /// statistics under them bounds their number.
    pub fn stat_key_varies(&self) -> bool {
        self.overrides || self.levels.iter().any(|level| (self.detailed || level.by_value) && !level.shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(detailed: bool) -> EnvoyRule {
        let level = |key: &str, value: Option<&str>, shared, by_value| DescriptorLevel {
            key: key.to_owned(),
            value: value.map(str::to_owned),
            shared,
            by_value,
        };
        let levels = vec![
            level("a", None, false, false),
            level("b", None, false, true),
            level("c", Some("files/*"), true, true),
            level("d", Some("x"), false, false),
        ];
        EnvoyRule { domain: "edge".to_owned(), levels, detailed, ..EnvoyRule::default() }
    }

    #[test]
    fn statistics_go_by_values_only_where_asked() {
        let entries = [("a", "1"), ("b", "2"), ("c", "files/3"), ("d", "x")];
        assert_eq!(rule(false).stat_key(&entries), "edge.a.b_2.c_files/*.d_x");
        assert_eq!(rule(true).stat_key(&entries), "edge.a_1.b_2.c_files/*.d_x");
        assert_eq!(rule(true).full_key(), "edge.a.b.c_files/*.d_x");
        let over = EnvoyRule { domain: "edge".to_owned(), overrides: true, ..EnvoyRule::default() };
        assert_eq!(over.stat_key(&entries[..2]), "edge.a_1.b_2");
        assert!(over.stat_key_varies() && rule(false).stat_key_varies());
    }
}
