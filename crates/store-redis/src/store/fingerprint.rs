//! Whether all nodes use the same secret: they compare its fingerprint in the store.
//!
//! Nodes with different secrets use different keys in the same store, and every limit applies once per secret. Nothing
//! fails, so it must be checked.

use tollgate_core::Span;
use tollgate_store::StoreError;

use super::redis_store::{RedisStore, unavailable};
use crate::client::slot::slot_of;

/// The key of the fingerprint.
pub(crate) const FINGERPRINT_KEY: &[u8] = b"tg:{AAA}fingerprint";
/// Expiry in milliseconds after the last confirmation: if all nodes change their secret, the old fingerprint disappears
/// by itself.
const KEPT_MILLIS: &[u8] = b"60000";

impl RedisStore {
    /// How often a node should confirm the fingerprint, so that it does not expire.
    pub const FINGERPRINT_EVERY: Span = Span::from_secs(15);

    /// Stores this fingerprint if there is none, and returns whether the stored one matches. A match renews its expiry.
    pub async fn matches_fingerprint(&self, own: &str) -> Result<bool, StoreError> {
        let slot = if self.topology.is_split() { slot_of(b"AAA") } else { 0 };
        let primary = self.topology.primary(slot).ok_or_else(|| unavailable("no primary is known yet"))?;
        let within = self.context.config.connect_timeout;
        let set: &[&[u8]] = &[b"SET", FINGERPRINT_KEY, own.as_bytes(), b"NX", b"PX", KEPT_MILLIS];
        let replies = primary.pipeline(&[set, &[b"GET", FINGERPRINT_KEY]], within).await?;
        // An error is not a mismatch: the store reports its errors elsewhere.
        let found = replies.get(1).and_then(|reply| reply.text());
        let found = found.ok_or_else(|| unavailable("the store did not return the fingerprint of its secret"))?;
        if found != own.as_bytes() {
            return Ok(false);
        }
        primary.pipeline(&[&[b"PEXPIRE", FINGERPRINT_KEY, KEPT_MILLIS]], within).await?;
        Ok(true)
    }
}
