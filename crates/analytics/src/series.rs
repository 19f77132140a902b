//! Counts over time in fixed memory: blocks of sixty steps, from a pool that is reused in a circle.
//!
//! A block holds one minute of seconds, one hour of minutes or sixty hours of one subject. Blocks are taken when something
//! is counted, so an idle subject takes nothing, and they are taken in the order of time: the next one replaces the
//! oldest. How far back a series reaches then follows from the number of active subjects, and the memory from nothing but
//! the configuration.

use std::collections::HashMap;

use tollgate_core::Time;

use crate::TrafficCounts;

/// Steps of one block.
const STEPS: u64 = 60;
/// Bytes of a block and of its entry in the index, as allocated.
pub(crate) const BLOCK_BYTES: usize = size_of::<SeriesBlock>() + 128;

/// The subject of a series: a rule, a client, or a client at a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesKey(pub u64, pub u64);

/// The length of the steps of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resolution {
    /// One second.
    Second,
    /// One minute.
    Minute,
    /// One hour.
    Hour,
}

impl Resolution {
    /// All of them, the finest first.
    pub const ALL: [Resolution; 3] = [Resolution::Second, Resolution::Minute, Resolution::Hour];

    /// Seconds of a step.
    pub const fn seconds(self) -> u64 {
        match self {
            Resolution::Second => 1,
            Resolution::Minute => 60,
            Resolution::Hour => 3600,
        }
    }

    const fn nanos(self) -> u64 {
        self.seconds() * 1_000_000_000
    }
}

/// Counts by step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficSeries {
    /// The start of the first step.
    pub start: Time,
    /// The length of a step.
    pub resolution: Resolution,
    /// The counts of each step.
    pub steps: Vec<TrafficCounts>,
}

/// Series of any number of subjects, in fixed memory.
#[derive(Debug)]
pub struct SeriesPool {
    rings: [BlockRing; 3],
}

/// Where the current blocks of a subject are, so that counting looks nothing up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeriesHandle([u32; 3]);

#[derive(Debug)]
struct BlockRing {
    resolution: Resolution,
    blocks: Vec<SeriesBlock>,
    /// The block that is replaced next.
    next: usize,
    blocks_max: usize,
    index: HashMap<(SeriesKey, u64), u32>,
}

#[derive(Debug)]
struct SeriesBlock {
    key: SeriesKey,
    /// Its number since the epoch.
    number: u64,
    allowed: [u32; STEPS as usize],
    denied: [u32; STEPS as usize],
    shadow_denied: [u32; STEPS as usize],
    cost: [u64; STEPS as usize],
}

impl SeriesPool {
    /// A pool within so many bytes: half of them for seconds, the rest for minutes and hours.
    pub fn new(bytes: usize) -> SeriesPool {
        let rings = Resolution::ALL.map(|resolution| {
            let share = if resolution == Resolution::Second { bytes / 2 } else { bytes / 4 };
            BlockRing {
                resolution,
                blocks: Vec::new(),
                next: 0,
                blocks_max: (share / BLOCK_BYTES).clamp(1, u32::MAX as usize - 1),
                index: HashMap::new(),
            }
        });
        SeriesPool { rings }
    }

    /// Counts for a subject at a time.
    pub fn count(&mut self, key: SeriesKey, at: Time, counts: TrafficCounts) {
        self.count_at(&mut SeriesHandle::default(), key, at, counts);
    }

    pub(crate) fn count_at(&mut self, handle: &mut SeriesHandle, key: SeriesKey, at: Time, counts: TrafficCounts) {
        for (ring, slot) in self.rings.iter_mut().zip(&mut handle.0) {
            ring.count(slot, key, at, counts);
        }
    }

    /// The last `steps` steps of a subject up to and with that of `until`.
    pub fn read(&self, key: SeriesKey, resolution: Resolution, until: Time, steps: usize) -> TrafficSeries {
        let step = resolution.nanos();
        let first = (until.nanos() / step + 1).saturating_sub(steps as u64);
        let ring = self.rings.iter().find(|ring| ring.resolution == resolution);
        let counts =
            (first..first + steps as u64).map(|number| ring.map(|ring| ring.step(key, number)).unwrap_or_default());
        TrafficSeries { start: Time::from_nanos(first * step), resolution, steps: counts.collect() }
    }

    /// Bytes that the pool takes at most.
    pub fn bytes_max(&self) -> usize {
        self.rings.iter().map(|ring| ring.blocks_max * BLOCK_BYTES).sum()
    }
}

impl BlockRing {
    fn count(&mut self, slot: &mut u32, key: SeriesKey, at: Time, counts: TrafficCounts) {
        let step = at.nanos() / self.resolution.nanos();
        let (number, place) = (step / STEPS, (step % STEPS) as usize);
        let is_current = |block: &SeriesBlock| block.key == key && block.number == number;
        if !self.blocks.get(*slot as usize).is_some_and(is_current) {
            *slot = self.block(key, number);
        }
        if let Some(block) = self.blocks.get_mut(*slot as usize) {
            add(&mut block.allowed, place, counts.allowed);
            add(&mut block.denied, place, counts.denied);
            add(&mut block.shadow_denied, place, counts.shadow_denied);
            if let Some(cost) = block.cost.get_mut(place) {
                *cost = cost.saturating_add(counts.cost);
            }
        }
    }

    /// The block of a subject; the oldest of all makes room for a new one.
    fn block(&mut self, key: SeriesKey, number: u64) -> u32 {
        if let Some(slot) = self.index.get(&(key, number)) {
            return *slot;
        }
        let slot = self.next;
        self.next = (slot + 1) % self.blocks_max;
        let block = SeriesBlock::new(key, number);
        match self.blocks.get_mut(slot) {
            Some(old) => {
                self.index.remove(&(old.key, old.number));
                *old = block;
            }
            None => {
                if self.blocks.is_empty() {
                    // All at once: a table that grows is there twice for a moment.
                    self.blocks.reserve_exact(self.blocks_max);
                    self.index.reserve(self.blocks_max);
                }
                self.blocks.push(block);
            }
        }
        self.index.insert((key, number), slot as u32);
        slot as u32
    }

    fn step(&self, key: SeriesKey, step: u64) -> TrafficCounts {
        let slot = self.index.get(&(key, step / STEPS));
        let block = slot.and_then(|slot| self.blocks.get(*slot as usize));
        let place = (step % STEPS) as usize;
        block.map_or_else(TrafficCounts::default, |block| TrafficCounts {
            allowed: read(&block.allowed, place),
            denied: read(&block.denied, place),
            shadow_denied: read(&block.shadow_denied, place),
            cost: block.cost.get(place).copied().unwrap_or_default(),
        })
    }
}

impl SeriesBlock {
    const fn new(key: SeriesKey, number: u64) -> SeriesBlock {
        const NONE: [u32; STEPS as usize] = [0; STEPS as usize];
        SeriesBlock { key, number, allowed: NONE, denied: NONE, shadow_denied: NONE, cost: [0; STEPS as usize] }
    }
}

fn add(cells: &mut [u32], place: usize, count: u64) {
    if let Some(cell) = cells.get_mut(place).filter(|_| count > 0) {
        *cell = cell.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }
}

fn read(cells: &[u32], place: usize) -> u64 {
    cells.get(place).copied().map_or(0, u64::from)
}
