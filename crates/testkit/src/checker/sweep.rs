//! Finds the interval in which most was admitted, in O(n log n), for any algorithm.
//!
//! Every bound has one form: for all intervals from `s` to `e`, no longer than `window`, what lies inside is at most
//! `capacity + drain · (e − s)`. So `e` sweeps over the ends of all pieces, while a tree over the possible starts keeps,
//! for each `s`, what was admitted since then plus what the drain would have taken until then. A piece counts for all
//! starts up to its own beginning; a loss pays for all starts before it.

use super::Loss;
use crate::LimitConfig;

/// Units admitted at some time between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The earliest time.
    pub from: u64,
    /// The latest.
    pub to: u64,
    /// Units.
    pub units: u64,
    /// Whether they came from a lease.
    pub leased: bool,
}

/// A bound over intervals: `units · weight ≤ capacity · weight + drain · length`, for lengths within the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Weight of a unit.
    pub weight: u64,
    /// Weight that drains per nanosecond.
    pub drain: u64,
    /// Units that may be admitted at once.
    pub capacity: u64,
    /// Longest interval, its end excluded; none if the bound holds for all.
    pub window: Option<u64>,
}

impl Flow {
    /// The bounds of an algorithm over intervals, by the names of their promises.
    pub fn of(config: &LimitConfig, leased: u64) -> Vec<(&'static str, Flow)> {
        match *config {
            LimitConfig::Gcra { burst, .. } if leased > 0 => {
                let flow = Flow { weight: config.interval(), drain: 1, capacity: burst + leased, window: None };
                vec![("P5: any interval, with leases", flow)]
            }
            LimitConfig::Gcra { burst, .. } => {
                let flow = Flow { weight: config.interval(), drain: 1, capacity: burst, window: None };
                vec![("P3: any interval", flow)]
            }
            LimitConfig::FixedWindow { limit, window, .. } => {
                let flow = Flow { weight: 1, drain: 0, capacity: 2 * limit, window: Some(window) };
                vec![("P1: interval of one window", flow)]
            }
            LimitConfig::SlidingLog { limit, window } => {
                let flow = Flow { weight: 1, drain: 0, capacity: limit, window: Some(window) };
                vec![("P2: interval of one window", flow)]
            }
            LimitConfig::SlidingCounter { limit, window, .. } => {
                let flow = Flow { weight: window, drain: limit, capacity: limit, window: Some(window + 1) };
                vec![("P4: interval within a window", flow)]
            }
            LimitConfig::Queue { .. } => {
                let flow = Flow { weight: config.interval(), drain: 1, capacity: config.capacity(), window: None };
                vec![("queue: any interval", flow)]
            }
            LimitConfig::Quota { amount, overdraft, rollover, grant, start, end, next_end } => {
                let (most, shorter) = (amount + overdraft + rollover + grant, (end - start).min(next_end - end));
                let flow = Flow { weight: 1, drain: 0, capacity: 2 * most, window: Some(shorter) };
                vec![("quota: interval of the shorter period", flow)]
            }
            LimitConfig::Concurrency { .. } => Vec::new(), // what is in flight: see `inflight`
        }
    }
}

/// The units admitted and the most that was allowed, in the worst interval, if any is above its bound.
pub fn sweep(pieces: &mut [Piece], flow: &Flow, losses: &[Loss]) -> Option<(u64, u64)> {
    pieces.sort_unstable_by_key(|piece| piece.to);
    let mut starts: Vec<u64> = pieces.iter().map(|piece| piece.from).collect();
    starts.sort_unstable();
    starts.dedup();
    let mut tree = Tree::new(&starts, flow);
    let mut losses: Vec<&Loss> = losses.iter().collect();
    losses.sort_unstable_by_key(|loss| loss.from);
    let (mut waiting, mut worst) = (losses.into_iter().peekable(), None);
    let mut most_above = 0;
    for (place, piece) in pieces.iter().enumerate() {
        tree.add(
            starts.partition_point(|start| *start <= piece.from),
            i128::from(piece.units) * i128::from(flow.weight),
        );
        while let Some(loss) = waiting.next_if(|loss| loss.from <= piece.to) {
            let before = starts.partition_point(|start| *start <= loss.to);
            tree.add(before, -i128::from(loss.units) * i128::from(flow.weight));
        }
        if pieces.get(place + 1).is_some_and(|next| next.to == piece.to) {
            continue;
        }
        let first =
            flow.window.map_or(0, |window| starts.partition_point(|start| piece.to - start.min(&piece.to) >= window));
        let last = starts.partition_point(|start| *start <= piece.to);
        let above = tree.max(first, last) - i128::from(piece.to) * i128::from(flow.drain);
        let above = above - i128::from(flow.capacity) * i128::from(flow.weight);
        if above > most_above {
            most_above = above;
            let over = (above + i128::from(flow.weight) - 1) / i128::from(flow.weight);
            worst = Some((flow.capacity + over as u64, flow.capacity));
        }
    }
    worst
}

/// Sums by start: adds to all starts before a place, and finds the largest of a range.
struct Tree {
    size: usize,
    max: Vec<i128>,
    added: Vec<i128>,
}

/// Less than any sum.
const NONE: i128 = i128::MIN / 4;

impl Tree {
    /// Every start begins with what the drain would have taken until then.
    fn new(starts: &[u64], flow: &Flow) -> Tree {
        let size = starts.len().next_power_of_two().max(1);
        let mut max = vec![NONE; 2 * size];
        for (place, start) in starts.iter().enumerate() {
            max[size + place] = i128::from(*start) * i128::from(flow.drain);
        }
        for node in (1..size).rev() {
            max[node] = max[2 * node].max(max[2 * node + 1]);
        }
        Tree { size, max, added: vec![0; 2 * size] }
    }

    /// Adds to the first `count` starts.
    fn add(&mut self, count: usize, weight: i128) {
        self.add_below(1, 0, self.size, count, weight);
    }

    fn add_below(&mut self, node: usize, from: usize, length: usize, count: usize, weight: i128) {
        if count <= from {
            return;
        }
        if from + length <= count {
            self.max[node] += weight;
            self.added[node] += weight;
            return;
        }
        let half = length / 2;
        self.add_below(2 * node, from, half, count, weight);
        self.add_below(2 * node + 1, from + half, half, count, weight);
        self.max[node] = self.max[2 * node].max(self.max[2 * node + 1]) + self.added[node];
    }

    /// The largest from `first` to before `last`.
    fn max(&self, first: usize, last: usize) -> i128 {
        self.max_in(1, 0, self.size, first, last)
    }

    fn max_in(&self, node: usize, from: usize, length: usize, first: usize, last: usize) -> i128 {
        if last <= from || from + length <= first {
            return NONE;
        }
        if first <= from && from + length <= last {
            return self.max[node];
        }
        let half = length / 2;
        let left = self.max_in(2 * node, from, half, first, last);
        let right = self.max_in(2 * node + 1, from + half, half, first, last);
        left.max(right) + self.added[node]
    }
}
