//! Notices that many more requests are denied than before.

use std::collections::VecDeque;

/// Minutes that a minute is compared with.
const HISTORY: usize = 60;
/// Minutes that must be known before anything is called unusual.
const HISTORY_MIN: usize = 5;
/// How many times the average a spike is.
const FACTOR: u64 = 10;
/// Denials in a minute below which nothing is a spike.
const DENIALS_MIN: u64 = 100;

/// Denials by minute.
#[derive(Debug, Default)]
pub(super) struct DenialSpikes {
    before: VecDeque<u64>,
    is_spike: bool,
}

/// A minute with many denials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DenialSpike {
    /// Requests denied in this minute.
    pub(super) denials: u64,
    /// In an average minute of the hour before.
    pub(super) usual: u64,
}

impl DenialSpikes {
    /// Takes the denials of the minute that has ended; a spike is reported when it begins.
    pub(super) fn minute(&mut self, denials: u64) -> Option<DenialSpike> {
        let known = self.before.len();
        let usual = self.before.iter().sum::<u64>() / known.max(1) as u64;
        let is_spike = known >= HISTORY_MIN && denials >= DENIALS_MIN && denials / FACTOR >= usual;
        let begins = is_spike && !std::mem::replace(&mut self.is_spike, is_spike);
        self.is_spike = is_spike;
        if known == HISTORY {
            self.before.pop_front();
        }
        self.before.push_back(denials);
        begins.then_some(DenialSpike { denials, usual })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spike_is_ten_times_the_usual_and_told_once() {
        let mut spikes = DenialSpikes::default();
        let quiet: Vec<u64> = vec![10; 6];
        assert!(quiet.into_iter().all(|minute| spikes.minute(minute).is_none()));
        assert_eq!(spikes.minute(99), None, "too few to matter");
        let usual = (60 + 99) / 7;
        assert_eq!(spikes.minute(1000), Some(DenialSpike { denials: 1000, usual }));
        assert_eq!(spikes.minute(9000), None, "it is the same spike");
        assert_eq!(spikes.minute(10), None);
        assert_eq!(spikes.minute(90_000).map(|spike| spike.denials), Some(90_000), "another one");
    }

    #[test]
    fn nothing_is_unusual_after_a_start_and_constant_denials_never_are() {
        let mut spikes = DenialSpikes::default();
        assert!((0..200).all(|_| spikes.minute(100_000).is_none()));
        assert_eq!(spikes.before.len(), HISTORY);
    }
}
