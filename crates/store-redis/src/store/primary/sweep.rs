//! Finds buckets that lost their expiry (`PERSIST`, a restored dump). A touched bucket gets its expiry back by itself;
//! the sweep finds those that are not touched any more.
//!
//! One node at a time scans the keys of a primary, a few hundred per second: ten million take half a day. An arrival
//! time shows when its bucket equals an unused one, and the bucket expires then. For other buckets the window is
//! unknown, and they expire after the longest period in use.

use tollgate_resp::RespValue;
use tracing::{info, warn};

use super::core::PrimaryCore;
use crate::client::failure::ErrorCode;
use crate::store::key::BucketKey;
use crate::store::stats::add;

/// Keys per step, about.
const STEP: &[u8] = b"200";
/// How long a node owns the sweep without renewing its claim.
const LEASE_MS: &[u8] = b"5000";
/// Expiry of a bucket whose end is unknown: a month and some days.
const KEPT_MS: &[u8] = b"3024000000";

/// The position of the scan.
#[derive(Debug)]
pub(crate) struct Sweep {
    cursor: Vec<u8>,
    is_refused: bool,
}

impl Default for Sweep {
    fn default() -> Sweep {
        Sweep { cursor: b"0".to_vec(), is_refused: false }
    }
}

impl Sweep {
    /// Scans one step, unless another node owns the sweep.
    pub(crate) async fn step(&mut self, core: &PrimaryCore) {
        if self.is_refused || !is_ours(core).await {
            return;
        }
        let scan: [&[&[u8]]; 1] = [&[b"SCAN", &self.cursor, b"MATCH", b"tg:{???}*", b"COUNT", STEP]];
        let Ok(replies) = core.pipeline(&scan, core.patience()).await else { return };
        let Some(reply) = replies.first() else { return };
        if ErrorCode::of(reply) == Some(ErrorCode::NoPerm) {
            info!(store = %core.address(), "no permission for SCAN: buckets that lost their expiry are not searched");
            self.is_refused = true;
        }
        let Some([RespValue::Text(next), RespValue::Array(keys)]) = reply.array() else { return };
        self.cursor = next.to_vec();
        let keys: Vec<&[u8]> =
            keys.iter().filter_map(RespValue::text).filter(|key| BucketKey::is_bucket_key(key)).collect();
        let asks: Vec<[&[u8]; 2]> = keys.iter().map(|key| [b"PTTL", *key]).collect();
        let asks: Vec<&[&[u8]]> = asks.iter().map(<[&[u8]; 2]>::as_slice).collect();
        let Ok(left) = core.pipeline(&asks, core.patience()).await else { return };
        let lost = keys.iter().zip(&left).filter(|(_, left)| left.integer() == Some(-1)).map(|(key, _)| *key);
        let lost: Vec<&[u8]> = lost.collect();
        if !lost.is_empty() {
            restore_expiry(core, &lost).await;
        }
    }
}

/// Claims the sweep for this node; false if another node owns it.
async fn is_ours(core: &PrimaryCore) -> bool {
    let (key, me) = (core.own_key("sweep"), core.context.id.to_string());
    let (key, me) = (key.as_bytes(), me.as_bytes());
    let claim: [&[&[u8]]; 1] = [&[b"SET", key, me, b"PX", LEASE_MS, b"NX", b"GET"]];
    match core.pipeline(&claim, core.patience()).await.as_deref() {
        Ok([RespValue::Nil]) => true,
        Ok([RespValue::Text(other)]) if other == me => {
            core.pipeline(&[&[b"PEXPIRE", key, LEASE_MS]], core.patience()).await.is_ok()
        }
        _ => false,
    }
}

/// Sets the expiry of buckets that still have none.
async fn restore_expiry(core: &PrimaryCore, keys: &[&[u8]]) {
    let reads: Vec<[&[u8]; 2]> = keys.iter().map(|key| [b"GET", *key]).collect();
    let reads: Vec<&[&[u8]]> = reads.iter().map(<[&[u8]; 2]>::as_slice).collect();
    let Ok(values) = core.pipeline(&reads, core.patience()).await else { return };
    let ends: Vec<Option<String>> = values.iter().map(|value| end_of(value.text()?)).collect();
    let writes: Vec<[&[u8]; 4]> = keys
        .iter()
        .zip(&ends)
        .map(|(key, end)| match end {
            Some(end) => [&b"PEXPIREAT"[..], *key, end.as_bytes(), b"NX"],
            None => [&b"PEXPIRE"[..], *key, KEPT_MS, b"NX"],
        })
        .collect();
    let writes: Vec<&[&[u8]]> = writes.iter().map(<[&[u8]; 4]>::as_slice).collect();
    if core.pipeline(&writes, core.patience()).await.is_ok() {
        add(&core.counters.mended, keys.len());
        warn!(store = %core.address(), buckets = keys.len(), "buckets without an expiry were found and got one");
    }
}

/// The millisecond after which a token bucket or a queue equals an unused one; `None` for other buckets.
fn end_of(value: &[u8]) -> Option<String> {
    let nanos: u64 =
        std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()?;
    Some((nanos / 1_000_000 + 2).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_time_tells_when_it_is_over() {
        assert_eq!(end_of(b"1700000000123456789").as_deref(), Some("1700000000125"));
        assert_eq!(end_of(b"+1700000000123456789"), None);
        assert_eq!(end_of(b"twelve bytes"), None);
    }
}
