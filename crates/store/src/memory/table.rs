//! An open-addressed hash table of fixed-size entries, keyed by digest.
//!
//! At a million keys the cache miss is the cost, so an entry holds digest and state side by side and is found by linear
//! probing: the home index comes from the bits of the digest, and neighbours share a cache line. The table grows by a
//! quarter instead of doubling, so memory per key stays close to the minimum; homes are in the order of the digests, so
//! growing reads and writes memory sequentially. Probing continues past the last home into a short tail instead of
//! wrapping around: removal then needs one comparison.

use tollgate_core::{Digest, Span, State, Time};

use super::changed_places::ChangedPlaces;

/// The buckets of one algorithm.
#[derive(Debug)]
pub(super) struct BucketTable<S> {
    /// Homes first, then the tail.
    entries: Vec<TableEntry<S>>,
    homes: usize,
    len: usize,
    /// Where the next sweep step starts.
    sweep_at: usize,
    /// Entries of durable states that changed since they were last reported. They are not dropped before: an older
    /// report of them would otherwise stay the last.
    changed: ChangedPlaces,
}

#[derive(Debug)]
pub(super) struct TableEntry<S> {
    /// All zero if vacant. A real digest is zero with probability 2^-128.
    bucket: Digest,
    pub(super) state: S,
    pub(super) owner: u32,
}

const VACANT: Digest = Digest([0, 0]);

/// How long a bucket stays after it became fresh, while there is memory to grow into.
const GRACE: Span = Span::from_secs(5);

/// How long a bucket stays after it became fresh, even in a full store: it is still there after a small backward clock
/// step.
const MARGIN: Span = Span::SECOND;

/// Entries checked by one sweep step: bounds the work of the request that runs it.
const SWEEP_STEP: usize = 64;

impl<S> Default for BucketTable<S> {
    fn default() -> Self {
        BucketTable { entries: Vec::new(), homes: 0, len: 0, sweep_at: 0, changed: ChangedPlaces::default() }
    }
}

impl<S: State> BucketTable<S> {
    /// Buckets in the table.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the table, without the heap memory of states.
    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<TableEntry<S>>()
    }

    /// The index of `bucket`.
    #[inline]
    pub(super) fn find(&self, bucket: Digest) -> Option<usize> {
        let home = self.home(bucket);
        let probe =
            self.entries.get(home..)?.iter().position(|entry| entry.bucket == bucket || entry.bucket == VACANT)?;
        let place = home + probe;
        (self.entries.get(place)?.bucket == bucket).then_some(place)
    }

    /// The entry of `bucket`.
    #[inline]
    pub(super) fn find_mut(&mut self, bucket: Digest) -> Option<&mut TableEntry<S>> {
        let home = self.home(bucket);
        let entry =
            self.entries.get_mut(home..)?.iter_mut().find(|entry| entry.bucket == bucket || entry.bucket == VACANT)?;
        (entry.bucket == bucket).then_some(entry)
    }

    /// The entry at `place`, if it is still `bucket`'s.
    #[inline]
    pub(super) fn get(&self, place: usize, bucket: Digest) -> Option<&TableEntry<S>> {
        self.entries.get(place).filter(|entry| entry.bucket == bucket)
    }

    /// The entry at `place`, if it is still `bucket`'s.
    #[inline]
    pub(super) fn get_mut(&mut self, place: usize, bucket: Digest) -> Option<&mut TableEntry<S>> {
        self.entries.get_mut(place).filter(|entry| entry.bucket == bucket)
    }

    /// True if one more entry fits without growing, after `pending` others.
    #[inline]
    pub(super) fn has_room(&self, pending: usize) -> bool {
        self.len + pending < most(self.homes)
    }

    /// Bytes of the table after growing for one more entry after `pending` others.
    pub(super) fn bytes_grown(&self, pending: usize) -> usize {
        slots(self.homes_for(pending)) * size_of::<TableEntry<S>>()
    }

    /// Homes needed for one more entry after `pending` others: a quarter more, as often as needed.
    fn homes_for(&self, pending: usize) -> usize {
        let mut homes = grown(self.homes);
        while most(homes) <= self.len + pending {
            homes = grown(homes);
        }
        homes
    }

    /// Inserts a new entry and returns its index. Grows if probing reaches the end of the tail, which the budget must
    /// tolerate: it happens to one table in many thousands.
    pub(super) fn insert(&mut self, bucket: Digest, state: S, owner: u32) -> usize {
        debug_assert!(bucket != VACANT && self.find(bucket).is_none(), "a bucket is inserted once");
        loop {
            let home = self.home(bucket);
            let vacant = self.entries.iter().skip(home).position(|entry| entry.bucket == VACANT);
            match vacant.and_then(|probe| Some((home + probe, self.entries.get_mut(home + probe)?))) {
                Some((place, entry)) => {
                    *entry = TableEntry { bucket, state, owner };
                    self.len += 1;
                    return place;
                }
                None => self.resize(grown(self.homes), |_, _| true),
            }
        }
    }

    /// Rebuilds the table without entries that have been fresh for a while, larger if there were few; calls `dropped`
    /// with every dropped entry. A bucket that became fresh just now stays: it is probably in use, and creating it
    /// again costs more than keeping it.
    pub(super) fn grow(&mut self, now: Time, pending: usize, dropped: impl FnMut(&TableEntry<S>)) {
        let now = now.before(GRACE);
        let enough = self.live(now) + pending < most(self.homes) * 4 / 5;
        let homes = if enough { self.homes } else { self.homes_for(pending) };
        self.rebuild(homes, now, dropped);
    }

    /// Releases memory after a flood: rebuilds a mostly empty table at the size that it needs.
    pub(super) fn shrink(&mut self, now: Time, dropped: impl FnMut(&TableEntry<S>)) {
        let now = now.before(MARGIN);
        let live = self.live(now);
        if self.homes > 64 && live * 3 < most(self.homes) {
            self.rebuild(live * 2, now, dropped);
        }
    }

    fn live(&self, now: Time) -> usize {
        let is_live = |(place, entry): &(usize, &TableEntry<S>)| {
            entry.bucket != VACANT && (!entry.state.is_fresh(now) || self.changed.contains(*place))
        };
        self.entries.iter().enumerate().filter(is_live).count()
    }

    fn rebuild(&mut self, homes: usize, now: Time, mut dropped: impl FnMut(&TableEntry<S>)) {
        self.resize(homes.max(8), |entry, is_changed| {
            let keep = is_changed || !entry.state.is_fresh(now);
            if !keep {
                dropped(entry);
            }
            keep
        });
    }

    /// Checks the next few entries and drops those that are fresh.
    pub(super) fn sweep_step(&mut self, now: Time, mut dropped: impl FnMut(&TableEntry<S>)) {
        let now = now.before(MARGIN);
        for _ in 0..SWEEP_STEP.min(self.entries.len()) {
            if self.sweep_at >= self.entries.len() {
                self.sweep_at = 0;
            }
            match self.entries.get(self.sweep_at) {
                Some(entry)
                    if entry.bucket != VACANT && entry.state.is_fresh(now) && !self.changed.contains(self.sweep_at) =>
                {
                    dropped(entry);
                    self.remove(self.sweep_at); // another entry may have moved here: check again
                }
                _ => self.sweep_at += 1,
            }
        }
    }

    /// Removes an entry and closes the gap, so that all entries after it stay reachable from their homes.
    pub(super) fn remove(&mut self, place: usize) {
        let mut gap = place;
        for next in place + 1.. {
            match self.entries.get(next) {
                Some(entry) if entry.bucket != VACANT => {
                    if self.home(entry.bucket) <= gap {
                        self.entries.swap(gap, next);
                        self.changed.swap(gap, next);
                        gap = next;
                    }
                }
                _ => break,
            }
        }
        if let Some(entry) = self.entries.get_mut(gap) {
            *entry = TableEntry::vacant();
            self.changed.clear(gap);
            self.len -= 1;
        }
    }

    #[inline]
    fn home(&self, bucket: Digest) -> usize {
        let [_, bits] = bucket.0;
        ((u128::from(bits) * self.homes as u128) >> 64) as usize
    }

    fn resize(&mut self, homes: usize, mut keep: impl FnMut(&TableEntry<S>, bool) -> bool) {
        let entries: Vec<_> = (0..slots(homes)).map(|_| TableEntry::vacant()).collect();
        let changed = self.changed.rebuilt(entries.len());
        let old = std::mem::replace(self, BucketTable { entries, homes, len: 0, sweep_at: 0, changed });
        for (place, entry) in old.entries.into_iter().enumerate() {
            let is_changed = old.changed.contains(place);
            if entry.bucket != VACANT && keep(&entry, is_changed) {
                let place = self.insert(entry.bucket, entry.state, entry.owner);
                if is_changed {
                    self.changed.mark(place);
                }
            }
        }
    }

    /// Starts to track which entries change.
    pub(super) fn track_changes(&mut self) {
        self.changed.track(self.entries.len());
    }

    pub(super) fn is_tracking(&self) -> bool {
        self.changed.is_tracking()
    }

    /// Notes that the entry at `place` changed. Costs nothing for states that need not be durable.
    #[inline]
    pub(super) fn mark_changed(&mut self, place: usize) {
        if S::IS_DURABLE {
            self.changed.mark(place);
        }
    }

    /// Calls `report` with every entry that changed since the last call.
    pub(super) fn drain_changed(&mut self, mut report: impl FnMut(Digest, &S, u32)) {
        let BucketTable { entries, changed, .. } = self;
        changed.drain(|place| {
            if let Some(entry) = entries.get(place).filter(|entry| entry.bucket != VACANT) {
                report(entry.bucket, &entry.state, entry.owner);
            }
        });
    }

    /// Calls `visit` with every entry.
    pub(super) fn for_each(&self, mut visit: impl FnMut(Digest, &S, u32)) {
        let entries = self.entries.iter().filter(|entry| entry.bucket != VACANT);
        entries.for_each(|entry| visit(entry.bucket, &entry.state, entry.owner));
    }
}

impl<S: State> TableEntry<S> {
    fn vacant() -> TableEntry<S> {
        TableEntry { bucket: VACANT, state: S::default(), owner: 0 }
    }
}

/// A quarter more homes.
fn grown(homes: usize) -> usize {
    (homes + homes / 4).max(8)
}

/// Entries for that many homes: the tail takes entries that probe past the last home.
fn slots(homes: usize) -> usize {
    homes + (homes / 8 + 4).min(128)
}

/// The most entries for that many homes: four fifths.
fn most(homes: usize) -> usize {
    homes / 5 * 4
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Counter, QuotaUse, Tat, Window};

    use super::*;

    #[test]
    fn entries_have_the_documented_size() {
        assert_eq!(size_of::<TableEntry<Tat>>(), 32);
        assert_eq!(size_of::<TableEntry<Window>>(), 40);
        assert_eq!(size_of::<TableEntry<Counter>>(), 48);
        assert_eq!(size_of::<TableEntry<QuotaUse>>(), 48);
    }

    fn digest(n: u64) -> Digest {
        let spread = |x: u64| x.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Digest([spread(n + 1), spread(spread(n + 7))])
    }

    #[test]
    fn entries_are_found_through_growth_and_removal() {
        let mut table = BucketTable::<Tat>::default();
        for n in 0..10_000 {
            if !table.has_room(0) {
                table.grow(Time::ZERO, 0, |_| {});
            }
            table.insert(digest(n), Tat(Time::from_nanos(n + 1)), 0);
        }
        for n in (0..10_000).step_by(3) {
            let place = table.find(digest(n)).expect("was inserted");
            table.remove(place);
        }
        for n in 0..10_000 {
            let found = table.find(digest(n)).and_then(|place| table.get(place, digest(n))).map(|entry| entry.state);
            let expected = (n % 3 != 0).then_some(Tat(Time::from_nanos(n + 1)));
            assert_eq!(found, expected, "bucket {n}");
        }
    }

    #[test]
    fn growing_drops_only_fresh_entries() {
        let mut table = BucketTable::<Tat>::default();
        for n in 0..1000 {
            if !table.has_room(0) {
                table.grow(Time::ZERO, 0, |_| {});
            }
            table.insert(digest(n), Tat(Time::from_nanos(n + 1)), 0);
        }
        let mut dropped = 0;
        table.grow(Time::from_nanos(500).after(GRACE), 0, |_| dropped += 1);
        assert_eq!((dropped, table.len()), (500, 500));
        assert!((500..1000).all(|n| table.find(digest(n)).is_some()));
    }

    #[test]
    fn a_mostly_empty_table_releases_its_memory() {
        let mut table = BucketTable::<Tat>::default();
        for n in 0..1000 {
            if !table.has_room(0) {
                table.grow(Time::ZERO, 0, |_| {});
            }
            table.insert(digest(n), Tat(Time::from_nanos(n + 1)), 0);
        }
        let full = table.bytes();
        table.shrink(Time::from_nanos(990).after(MARGIN), |_| {});
        assert!(table.len() == 10 && table.bytes() < full / 10, "{} of {full}", table.bytes());
        assert!((990..1000).all(|n| table.find(digest(n)).is_some()));
    }

    #[test]
    fn sweeping_reaches_every_fresh_entry() {
        let mut table = BucketTable::<Tat>::default();
        for n in 0..1000 {
            if !table.has_room(0) {
                table.grow(Time::ZERO, 0, |_| {});
            }
            table.insert(digest(n), Tat(Time::from_nanos(n + 1)), 0);
        }
        for _ in 0..64 {
            table.sweep_step(Time::from_nanos(900).after(MARGIN), |_| {});
        }
        assert_eq!(table.len(), 100);
    }
}
