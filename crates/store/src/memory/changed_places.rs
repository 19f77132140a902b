//! Which entries of a table changed since they were last reported.

/// One bit per place of a table. Without bits nothing is tracked, and marking is a comparison.
#[derive(Debug, Default)]
pub(super) struct ChangedPlaces {
    words: Vec<u64>,
    is_tracking: bool,
}

impl ChangedPlaces {
    /// Starts to track a table of so many places, all of them unchanged.
    pub(super) fn track(&mut self, places: usize) {
        *self = ChangedPlaces { words: vec![0; places.div_ceil(64)], is_tracking: true };
    }

    pub(super) fn is_tracking(&self) -> bool {
        self.is_tracking
    }

    /// The same tracking for a rebuilt table of so many places.
    pub(super) fn rebuilt(&self, places: usize) -> ChangedPlaces {
        let mut rebuilt = ChangedPlaces::default();
        if self.is_tracking {
            rebuilt.track(places);
        }
        rebuilt
    }

    #[inline]
    pub(super) fn mark(&mut self, place: usize) {
        if let Some(word) = self.words.get_mut(place / 64) {
            *word |= 1 << (place % 64);
        }
    }

    pub(super) fn clear(&mut self, place: usize) {
        if let Some(word) = self.words.get_mut(place / 64) {
            *word &= !(1 << (place % 64));
        }
    }

    #[inline]
    pub(super) fn contains(&self, place: usize) -> bool {
        self.words.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    /// Follows two entries that change places.
    pub(super) fn swap(&mut self, one: usize, other: usize) {
        let (first, second) = (self.contains(one), self.contains(other));
        for (place, is_changed) in [(one, second), (other, first)] {
            if is_changed { self.mark(place) } else { self.clear(place) }
        }
    }

    /// Calls `visit` with every changed place and forgets it.
    pub(super) fn drain(&mut self, mut visit: impl FnMut(usize)) {
        for (number, word) in self.words.iter_mut().enumerate().filter(|(_, word)| **word != 0) {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                visit(number * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(places: &mut ChangedPlaces) -> Vec<usize> {
        let mut found = Vec::new();
        places.drain(|place| found.push(place));
        found
    }

    #[test]
    fn every_marked_place_is_reported_once() {
        let mut places = ChangedPlaces::default();
        places.mark(3);
        assert!(!places.contains(3), "nothing is tracked yet");
        places.track(130);
        for place in [0, 63, 64, 129, 64] {
            places.mark(place);
        }
        places.swap(129, 5);
        places.swap(0, 63);
        places.clear(63);
        assert_eq!(drained(&mut places), [0, 5, 64]);
        assert_eq!(drained(&mut places), []);
    }
}
