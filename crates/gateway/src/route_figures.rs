//! What a route's requests took and cost. It is kept when routes are loaded again, as long as its name is.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::duration_histogram::DurationHistogram;

/// What a route's requests took and cost.
#[derive(Debug, Default)]
pub(crate) struct RouteFigures {
    /// From the arrival of a request to the end of its response.
    pub(crate) duration: DurationHistogram,
    /// Amounts by meter, of which a route has few.
    settled: Mutex<BTreeMap<String, u64>>,
}

impl RouteFigures {
    /// Counts an amount that was settled.
    pub(crate) fn settled(&self, meter: &str, amount: u64) {
        let mut settled = self.settled.lock();
        match settled.get_mut(meter) {
            Some(sum) => *sum = sum.saturating_add(amount),
            None => _ = settled.insert(meter.to_owned(), amount),
        }
    }

    /// Amounts by meter.
    pub(crate) fn amounts(&self) -> Vec<(String, u64)> {
        self.settled.lock().iter().map(|(meter, amount)| (meter.clone(), *amount)).collect()
    }
}
