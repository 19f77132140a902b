//! What tells two rules apart that decide differently.

use std::fmt::Write;

use tollgate_core::{Digest, KeyHasher, Secret};

use super::rule::RuleBody;
use crate::spec::{Place, RuleSpec};

impl RuleBody {
    /// A digest of everything in the rule that decides; neither its place in a file nor its words. Nodes compare it, so
    /// it has a key that all of them know. Made once: a rule is shared by all generations in which it says the same.
    pub fn fingerprint(&self) -> Digest {
        *self.fingerprint.get_or_init(|| {
            let spec =
                RuleSpec { at: Place::default(), description: None, doc_url: None, ..RuleSpec::clone(&self.spec) };
            let mut text = String::new();
            let _ = write!(text, "{} {} {:?} {:?} {spec:?}", self.namespace, self.name, self.limit, self.on_fail);
            let mut hasher = KeyHasher::new(Secret::new(*b"rules of a node."));
            hasher.part(text.as_bytes());
            hasher.finish()
        })
    }
}
