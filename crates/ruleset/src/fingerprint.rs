//! Fingerprints of rules and sets: equal fingerprints mean equal decisions.

use std::fmt::Write;

use tollgate_core::{Digest, KeyHasher, Secret};
use tollgate_rules::position::SourcePosition;
use tollgate_rules::spec::RuleSpec;

use super::rule::RuleBody;
use super::{CompiledNamespace, RuleSet};

/// The defaults of fields that earlier versions of the program do not have, as `Debug` writes them.
const LATER_DEFAULTS: [&str; 5] =
    [", meter: Requests, unmetered: Skip", ", quota: None", ", penalty: None", ", plan: None", ", reserved: None"];

impl RuleBody {
    /// A digest of all fields that affect decisions; position, description and URL do not. Nodes compare it, so its key
    /// is fixed. Computed once, because generations share unchanged rules. It hashes `Debug` output.
    pub fn fingerprint(&self) -> Digest {
        *self.fingerprint.get_or_init(|| {
            let spec = RuleSpec {
                at: SourcePosition::default(),
                description: None,
                doc_url: None,
                ..RuleSpec::clone(&self.spec)
            };
            let mut text = String::new();
            let _ = write!(text, "{} {} {:?} {:?} {spec:?}", self.namespace, self.name, self.limit, self.on_fail);
            // Fields of later versions show only where they are used: nodes of several versions compare digests.
            let text = LATER_DEFAULTS.iter().fold(text, |text, default| text.replace(default, ""));
            let mut hasher = KeyHasher::new(Secret::new(*b"rules of a node."));
            hasher.part(text.as_bytes());
            hasher.finish()
        })
    }
}

impl RuleSet {
    /// A digest of all that affects decisions: the rules, independent of order and file, and settings of namespaces
    /// that are not the default.
    pub fn fingerprint(&self) -> Digest {
        let defaults = CompiledNamespace::without_rules();
        let reads = |namespace: &CompiledNamespace| {
            let CompiledNamespace { ipv6_prefix, escaped_slash, normalize, .. } = *namespace;
            let plan = namespace.default_plan.as_ref().map(|plan| format!(" {plan}")).unwrap_or_default();
            format!("{ipv6_prefix} {escaped_slash:?} {normalize:?}{plan}")
        };
        let settings = self.namespaces.iter().map(|(name, namespace)| (name, reads(namespace)));
        let settings = settings.filter(|(_, reads_so)| *reads_so != reads(&defaults)).map(|(name, reads_so)| {
            let mut hasher = KeyHasher::new(Secret::new(*b"rules of a node."));
            hasher.part(name.as_bytes());
            hasher.part(reads_so.as_bytes());
            hasher.finish()
        });
        let all = self.rules.iter().map(|rule| rule.fingerprint()).chain(settings);
        Digest(all.fold([0; 2], |[low, high], Digest([a, b])| [low.wrapping_add(a), high.wrapping_add(b)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CompileOptions;

    const FIRST: &str = include_str!("../../rules/samples/first.yaml");
    const DESIGN: &str = include_str!("../../rules/samples/design.yaml");
    const FULL: &str = include_str!("../../rules/samples/full.yaml");

    /// Nodes of several versions compare fingerprints, which are digests of `Debug` output: a renamed type or field in
    /// a rule or a limit changes them, unless it prints its old name.
    #[test]
    fn fingerprints_are_the_same_in_all_versions() {
        let fingerprints = [FIRST, DESIGN, FULL].map(|text| {
            let file = tollgate_rules::read("rules.yaml", text).unwrap_or_else(|report| panic!("{report}"));
            let [a, b] = RuleSet::compile(&[file], &CompileOptions::reproducible()).unwrap().fingerprint().0;
            format!("{a:016x}{b:016x}")
        });
        let expected = [
            "b0d482f83058402d31311bcde2f2d68d",
            "6decadbe6a073851be18ccc9680f9573",
            "090452a9e781601f3ca3493de4de3924",
        ];
        assert_eq!(fingerprints, expected);
    }
}
