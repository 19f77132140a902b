//! Whether all nodes use the same rules: each node publishes a fingerprint of its rules in the store and reads those of
//! the others.
//!
//! Nodes with different rules charge the same buckets by different limits, or different buckets. Nothing fails, so it
//! must be checked.

use tollgate_core::Span;
use tollgate_store::StoreError;

use super::redis_store::{RedisStore, unavailable};
use crate::client::slot::slot_of;

/// The key of the fingerprints: a sorted set of `FINGERPRINT NODE` by the second of the last publication.
const RULES_KEY: &[u8] = b"tg:{AAA}rules";
/// Expiry of the set without nodes.
const RULES_TTL_MS: &[u8] = b"60000";
/// A node that has not published for this long is gone.
const GONE_AFTER_SECS: u64 = 10;
/// Index of the last fingerprint that is read.
const LAST: &[u8] = b"255";

/// The rules of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRules {
    /// The node.
    pub node: String,
    /// The fingerprint of its rules.
    pub fingerprint: String,
}

impl RedisStore {
    /// How often a node should publish its fingerprint.
    pub const RULES_EVERY: Span = Span::from_secs(3);

    /// Publishes the fingerprint of this node's rules, removes the previous one, and returns those of all nodes.
    pub async fn publish_rules(&self, own: &str, before: Option<&str>) -> Result<Vec<NodeRules>, StoreError> {
        let slot = if self.topology.is_split() { slot_of(b"AAA") } else { 0 };
        let primary = self.topology.primary(slot).ok_or_else(|| unavailable("no primary is known yet"))?;
        let now = primary.store_time().ok_or_else(|| unavailable("the store's time is not known yet"))?;
        let seconds = now.nanos() / Span::SECOND.nanos();
        let member = |fingerprint: &str| format!("{fingerprint} {}", self.context.config.node);
        let (told, score) = (member(own), seconds.to_string());
        let old = before.filter(|old| *old != own).map_or_else(|| "none".to_owned(), member);
        let gone = format!("({}", seconds.saturating_sub(GONE_AFTER_SECS));
        let commands: [&[&[u8]]; 5] = [
            &[b"ZADD", RULES_KEY, score.as_bytes(), told.as_bytes()],
            &[b"ZREM", RULES_KEY, old.as_bytes()],
            &[b"ZREMRANGEBYSCORE", RULES_KEY, b"-inf", gone.as_bytes()],
            &[b"PEXPIRE", RULES_KEY, RULES_TTL_MS],
            &[b"ZRANGE", RULES_KEY, b"0", LAST],
        ];
        let replies = primary.pipeline(&commands, self.context.config.connect_timeout).await?;
        let members = replies.last().and_then(|reply| reply.array());
        let members = members.ok_or_else(|| unavailable("the store did not return the rules of other nodes"))?;
        let read = |text: &[u8]| {
            let (fingerprint, node) = std::str::from_utf8(text).ok()?.split_once(' ')?;
            Some(NodeRules { node: node.to_owned(), fingerprint: fingerprint.to_owned() })
        };
        Ok(members.iter().filter_map(|member| read(member.text()?)).collect())
    }
}
