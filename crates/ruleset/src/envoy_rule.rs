//! The part of a rule that only rules from envoyproxy/ratelimit files have.

use tollgate_rules::envoy::{Metadata, Unit};

/// The field `envoy` of a [`Rule`](crate::Rule) from an envoyproxy/ratelimit file.
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
    /// Name that callers see: as written, with `_` for characters that are not allowed in a quoted header value.
    pub name: Option<String>,
    /// Requests per unit, and the unit. `None` if unlimited, and for the rule of limits that requests contain.
    pub limit: Option<(u32, Unit)>,
    /// It is the rule for limits that requests contain; each domain has one.
    pub overrides: bool,
    /// Always reported as within the limit.
    pub shadow_mode: bool,
    /// Denies a request only if all quotas that apply to it do.
    pub quota_mode: bool,
    /// Returned with the response if the request is allowed.
    pub metadata: Option<Metadata>,
    pub(crate) domain: String,
    /// The path from the first level; empty for an override.
    pub(crate) levels: Vec<DescriptorLevel>,
    /// Statistics are named after the request's values at all levels.
    pub(crate) detailed: bool,
}

/// One level of the path to a rule.
#[derive(Clone, Debug)]
pub(crate) struct DescriptorLevel {
    pub(crate) key: String,
    pub(crate) value: Option<String>,
    /// All values that match the pattern share one counter.
    pub(crate) shared: bool,
    /// Statistics are named after the request's value.
    pub(crate) by_value: bool,
}

impl EnvoyRule {
    /// Example entries that lead to the rule.
    pub fn example(&self) -> impl Iterator<Item = (String, String)> {
        let filled = |pattern: &str| pattern.replace('*', "1");
        self.levels.iter().map(move |level| (filled(&level.key), filled(level.value.as_deref().unwrap_or("*"))))
    }

    /// Keys of the entries that lead to the rule, each with the value or pattern of the file, if any.
    pub fn entries(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.levels.iter().map(|level| (level.key.as_str(), level.value.as_deref()))
    }

    /// Name of the rule's statistics in envoyproxy/ratelimit: `<domain>.<key>[_<value>][.<nested>]`, with the request's
    /// values where the file configures them. `entries` are the request's.
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

    /// Name of the rule in envoyproxy/ratelimit: its [`stat_key`](EnvoyRule::stat_key) with the values of the file.
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

    /// Whether [`stat_key`](EnvoyRule::stat_key) depends on the request. The number of such names is unbounded, so
    /// metrics must limit it.
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
