//! What nodes compare to learn whether they count together: a fingerprint of the secret that their keys are made with.
//!
//! Nodes with different secrets use different keys in the same store, and every limit holds once per secret: nothing
//! fails, so somebody has to look.

use tollgate_core::Span;
use tollgate_store::StoreError;

use super::redis_store::RedisStore;
use super::redis_store::unavailable;
use crate::client::slot::slot_of;

/// Where the fingerprint lives, beside the secret itself.
pub(crate) const FINGERPRINT_KEY: &[u8] = b"tg:{AAA}fingerprint";
/// How long it is kept after the last node that agrees was heard of, in milliseconds: when all nodes got another
/// secret, the old fingerprint goes by itself.
const KEPT_MILLIS: &[u8] = b"60000";

impl RedisStore {
    /// How often a node should say that it agrees: often enough that a fingerprint in use is always there.
    pub const FINGERPRINT_EVERY: Span = Span::from_secs(15);

    /// Leaves this fingerprint unless there is one, and answers whether the one that is there is the same. Whoever
    /// agrees keeps it there.
    pub async fn matches_fingerprint(&self, own: &str) -> Result<bool, StoreError> {
        let slot = if self.topology.is_split() { slot_of(b"AAA") } else { 0 };
        let primary = self.topology.primary(slot).ok_or_else(|| unavailable("no primary is known yet"))?;
        let within = self.context.config.connect_timeout;
        let set: &[&[u8]] = &[b"SET", FINGERPRINT_KEY, own.as_bytes(), b"NX", b"PX", KEPT_MILLIS];
        let replies = primary.pipeline(&[set, &[b"GET", FINGERPRINT_KEY]], within).await?;
        // An error is no other fingerprint: a store that refuses says so elsewhere.
        let found = replies.get(1).and_then(|reply| reply.text());
        let found = found.ok_or_else(|| unavailable("the store does not tell whose keys it has"))?;
        if found != own.as_bytes() {
            return Ok(false);
        }
        primary.pipeline(&[&[b"PEXPIRE", FINGERPRINT_KEY, KEPT_MILLIS]], within).await?;
        Ok(true)
    }
}
