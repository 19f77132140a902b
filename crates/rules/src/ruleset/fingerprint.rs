//! What tells two rules, and two sets of them, apart that decide differently.

use std::fmt::Write;

use tollgate_core::{Digest, KeyHasher, Secret};

use super::rule::RuleBody;
use super::{CompiledNamespace, RuleSet};
use crate::position::SourcePosition;
use crate::spec::RuleSpec;

impl RuleBody {
    /// A digest of everything in the rule that decides; neither its place in a file nor its words. Nodes compare it, so
    /// it has a key that all of them know. Made once: a rule is shared by all generations in which it says the same.
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
            let mut hasher = KeyHasher::new(Secret::new(*b"rules of a node."));
            hasher.part(text.as_bytes());
            hasher.finish()
        })
    }
}

impl RuleSet {
    /// A digest of everything that decides: rules in any order, wherever they stand in whichever file, and how their
    /// namespaces read requests where that is not the default.
    pub fn fingerprint(&self) -> Digest {
        let defaults = CompiledNamespace::without_rules();
        let reads = |namespace: &CompiledNamespace| {
            let CompiledNamespace { ipv6_prefix, escaped_slash, normalize, .. } = *namespace;
            format!("{ipv6_prefix} {escaped_slash:?} {normalize:?}")
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
