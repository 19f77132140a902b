//! How full a server's memory is, and whether buckets may be created.
//!
//! A full server refuses every write, so the creation of buckets is limited before it is full. Memory in use counts,
//! not arrivals: a client that returns after its bucket expired creates a key again, which replaces the expired one.
//! Memory is sampled four times a second; between samples the buckets created here are added, multiplied by the number
//! of nodes.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::client::info::Info;

/// In thousandths of the limit: from here on the creation of buckets is limited by rate, and from here on no bucket is
/// created.
const SCARCE_AT: u64 = 900;
const FULL_AT: u64 = 970;
/// A level ends this far below its start: a store at the border does not alternate with every sample.
const HYSTERESIS: u64 = 30;
/// Size of a bucket with its key and expiry, rounded up (133 and 149 bytes were measured).
const BUCKET_BYTES: u64 = 160;

/// How full the memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryLevel {
    /// Any number of buckets may be created.
    Roomy,
    /// Each namespace may create buckets at a limited rate.
    Scarce,
    /// No bucket may be created.
    Full,
}

impl MemoryLevel {
    const ALL: [MemoryLevel; 3] = [MemoryLevel::Roomy, MemoryLevel::Scarce, MemoryLevel::Full];

    /// Where it starts, in thousandths of the limit.
    const fn begins_at(self) -> u64 {
        match self {
            MemoryLevel::Roomy => 0,
            MemoryLevel::Scarce => SCARCE_AT,
            MemoryLevel::Full => FULL_AT,
        }
    }
}

/// The memory of one server.
#[derive(Debug, Default)]
pub(crate) struct MemoryGauge {
    level: AtomicU8,
    memory: Mutex<MemoryUse>,
}

/// Bytes in use, and their limit; a limit of zero is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryUse {
    used: u64,
    limit: u64,
}

impl MemoryUse {
    /// Reads `INFO memory`; `None` if the fields are missing.
    pub(crate) fn of(info: &Info) -> Option<MemoryUse> {
        let used = info.number("used_memory")?.saturating_sub(info.number("mem_not_counted_for_evict").unwrap_or(0));
        let maximum = info.number("maxmemory").unwrap_or(0);
        let limit = match info.field("maxmemory_policy") {
            _ if maximum == 0 => info.number("total_system_memory").unwrap_or(0),
            Some("noeviction") | None => maximum,
            // A server that evicts is never full: a cache besides the buckets keeps it at its limit.
            Some(_) => 0,
        };
        Some(MemoryUse { used, limit })
    }

    fn is_at(&self, parts: u64) -> bool {
        self.limit > 0 && u128::from(self.used) * 1000 >= u128::from(self.limit) * u128::from(parts)
    }

    /// The level after `from`: rises at once, falls with hysteresis.
    fn level(&self, from: MemoryLevel) -> MemoryLevel {
        let holds = |level: &MemoryLevel| {
            let begins = level.begins_at();
            self.is_at(if *level <= from { begins.saturating_sub(HYSTERESIS) } else { begins })
        };
        MemoryLevel::ALL.into_iter().rev().find(holds).unwrap_or(MemoryLevel::Roomy)
    }
}

impl MemoryGauge {
    /// The current level: one load.
    pub(crate) fn level(&self) -> MemoryLevel {
        MemoryLevel::ALL.get(usize::from(self.level.load(Ordering::Relaxed))).copied().unwrap_or(MemoryLevel::Full)
    }

    /// Records a sample. Returns the new level if it changed.
    pub(crate) fn record_sample(&self, sample: MemoryUse) -> Option<MemoryLevel> {
        let mut memory = self.memory.lock();
        *memory = sample;
        self.enter(sample.level(self.level()))
    }

    /// Counts buckets that each of `nodes` created since the last sample. Returns the new level if it changed.
    pub(crate) fn record_new_buckets(&self, buckets: u32, nodes: u64) -> Option<MemoryLevel> {
        let mut memory = self.memory.lock();
        memory.used = memory.used.saturating_add(u64::from(buckets).saturating_mul(nodes.max(1)) * BUCKET_BYTES);
        let level = self.level();
        self.enter(memory.level(level).max(level))
    }

    fn enter(&self, level: MemoryLevel) -> Option<MemoryLevel> {
        let old = self.level.swap(level as u8, Ordering::Relaxed);
        (old != level as u8).then_some(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_resp::RespValue;

    fn of(text: &'static str) -> Option<MemoryUse> {
        MemoryUse::of(&Info::of(&RespValue::Text(text.into())).unwrap())
    }

    #[test]
    fn a_level_begins_at_once_and_ends_with_hysteresis() {
        let gauge = MemoryGauge::default();
        for (used, level) in [
            (899, MemoryLevel::Roomy),
            (900, MemoryLevel::Scarce),
            (880, MemoryLevel::Scarce),
            (969, MemoryLevel::Scarce),
            (970, MemoryLevel::Full),
            (941, MemoryLevel::Full),
            (939, MemoryLevel::Scarce),
            (871, MemoryLevel::Scarce),
            (869, MemoryLevel::Roomy),
            (899, MemoryLevel::Roomy),
            (1500, MemoryLevel::Full),
            (100, MemoryLevel::Roomy),
        ] {
            let before = gauge.level();
            let told = gauge.record_sample(MemoryUse { used, limit: 1000 });
            assert_eq!(gauge.level(), level, "{used} of 1000");
            assert_eq!(told, (before != level).then_some(level));
        }
    }

    #[test]
    fn buckets_made_between_samples_count_for_every_node() {
        let gauge = MemoryGauge::default();
        let limit = 1_000_000;
        gauge.record_sample(MemoryUse { used: 800_000, limit });
        assert_eq!(gauge.record_new_buckets(300, 2), None);
        assert_eq!(gauge.record_new_buckets(13, 2), Some(MemoryLevel::Scarce), "313 times 160 bytes, by two nodes");
        assert_eq!(
            gauge.record_sample(MemoryUse { used: 800_000, limit }),
            Some(MemoryLevel::Roomy),
            "the sample is the truth"
        );
    }

    #[test]
    fn the_limit_is_what_the_server_may_use() {
        let bounded = "used_memory:10\r\nmaxmemory:20\r\nmaxmemory_policy:noeviction\r\ntotal_system_memory:99\r\n";
        assert_eq!(of(bounded), Some(MemoryUse { used: 10, limit: 20 }));
        let unbounded = "used_memory:10\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\ntotal_system_memory:99\r\n";
        assert_eq!(of(unbounded), Some(MemoryUse { used: 10, limit: 99 }), "its machine's memory");
        let replicated = "used_memory:10\r\nmem_not_counted_for_evict:4\r\nmaxmemory:20\r\n";
        assert_eq!(of(replicated), Some(MemoryUse { used: 6, limit: 20 }));
        let evicting = of("used_memory:20\r\nmaxmemory:20\r\nmaxmemory_policy:volatile-ttl\r\n").unwrap();
        assert_eq!(evicting.level(MemoryLevel::Roomy), MemoryLevel::Roomy);
        assert_eq!(of("maxmemory:20\r\n"), None);
    }
}
