//! Digests of the buckets that rules charge.

use tollgate_core::KeyHasher;
use tollgate_rules::path::PathCase;
use tollgate_rules::spec::Missing;

use super::attributes::AttrId;
use super::facts::RequestFacts;
use super::rule::Rule;
use crate::lookup::LowercasePath;

/// Precedes the value of a fallback attribute: `client_key` if `api_key` is absent. No length is as large.
const BORROWED: u64 = u64::MAX - 1;

/// Precedes a client key that is an address, in canonical form.
const ADDRESS: u64 = u64::MAX - 2;

impl Rule {
    /// The bucket's digest before sharding; `None` if a key part is missing and the rule skips such requests.
    #[inline]
    pub(super) fn key(&self, facts: &RequestFacts<'_>) -> Option<KeyHasher> {
        let mut hasher = self.hasher;
        for part in &self.key {
            match part_of(part, facts) {
                Some((id, borrowed)) => {
                    if borrowed {
                        hasher.word(BORROWED);
                    }
                    if part.len() > 1 {
                        hasher.word(id.index() as u64);
                    }
                    self.absorb(&mut hasher, id, facts);
                }
                None if self.spec.missing == Missing::Share => hasher.missing(),
                None => return None,
            }
        }
        Some(hasher)
    }

    /// The identity of the bucket's owner: namespace and first part of the key, so that a store can keep all buckets of
    /// one client together. Global rules have the namespace only. Shards of a hot bucket have different identities, so
    /// that they are stored apart.
    pub(super) fn identity(&self, facts: &RequestFacts<'_>, shard: Option<u64>) -> u32 {
        let mut hasher = self.identity;
        if let Some((id, _)) = self.key.first().and_then(|part| part_of(part, facts)) {
            hasher.word(id.index() as u64);
            self.absorb(&mut hasher, id, facts);
        }
        if let Some(shard) = shard {
            hasher.word(shard);
        }
        let [bits, _] = hasher.finish().0;
        bits as u32
    }

    fn absorb(&self, hasher: &mut KeyHasher, id: AttrId, facts: &RequestFacts<'_>) {
        match id {
            AttrId::IP => {
                let key = facts.ip_key().map_or(0, |key| key.bits());
                hasher.part(&key.to_be_bytes());
            }
            AttrId::ENDPOINT => self.absorb_endpoint(hasher, facts),
            AttrId::CLIENT_KEY if let Some(key) = facts.client_ip() => {
                hasher.word(ADDRESS);
                hasher.part(&key.bits().to_be_bytes());
            }
            _ => hasher.part(facts.value(id).unwrap_or_default().as_bytes()),
        }
    }

    /// Absorbs the path, with `{id}` for parameters. The method is absorbed only if the pattern has methods: otherwise
    /// every invented method would have its own bucket.
    fn absorb_endpoint(&self, hasher: &mut KeyHasher, facts: &RequestFacts<'_>) {
        let Some((method, path)) = facts.endpoint() else { return hasher.missing() };
        let pattern = self.conditions.endpoint.as_ref().and_then(|matcher| matcher.pattern_of(method, path));
        match pattern {
            Some(pattern) => {
                match method {
                    Some(method) if !pattern.methods.is_empty() => hasher.part(method.as_bytes()),
                    _ => hasher.missing(),
                }
                let path = pattern.path.template_of(path);
                match pattern.path.case {
                    PathCase::Sensitive => hasher.part(path.as_bytes()),
                    PathCase::Insensitive => hasher.part(LowercasePath::of(&path).as_str().as_bytes()),
                }
            }
            None => {
                hasher.missing();
                hasher.part(path.as_bytes());
            }
        }
    }

    /// A key part for display.
    pub(super) fn key_text(&self, id: AttrId, facts: &RequestFacts<'_>) -> String {
        match id {
            AttrId::IP => facts.ip_key().map(|key| key.to_string()).unwrap_or_default(),
            AttrId::ENDPOINT => {
                let (method, path) = facts.endpoint().unwrap_or((None, ""));
                match self.conditions.endpoint.as_ref().and_then(|matcher| matcher.pattern_of(method, path)) {
                    Some(pattern) => pattern.path.template_of(path).into_owned(),
                    None => path.to_owned(),
                }
            }
            _ => facts.value(id).unwrap_or_default().to_owned(),
        }
    }
}

/// The attribute that fills a key part: the first one present, else the client key (then `true`) if one of them falls
/// back to it.
pub(super) fn part_of(part: &[AttrId], facts: &RequestFacts<'_>) -> Option<(AttrId, bool)> {
    // Among alternatives an empty value counts as absent: an empty header must not hide the next alternative.
    let filled = |id: &&AttrId| present(**id, facts) && (part.len() == 1 || facts.value(**id) != Some(""));
    if let Some(id) = part.iter().find(filled) {
        return Some((*id, false));
    }
    let borrows = part.iter().any(|id| id.falls_back()) && facts.has(AttrId::CLIENT_KEY);
    borrows.then_some((AttrId::CLIENT_KEY, true))
}

fn present(id: AttrId, facts: &RequestFacts<'_>) -> bool {
    match id {
        AttrId::IP => facts.ip().is_some(),
        AttrId::ENDPOINT => facts.endpoint().is_some(),
        _ => facts.has(id),
    }
}
