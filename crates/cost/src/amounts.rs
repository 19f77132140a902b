//! Amounts of meters: what is reserved for a request, and what is settled after it.

use std::sync::Arc;

/// The largest amount of a meter: what a JSON number holds exactly.
pub(crate) const AMOUNT_MAX: u64 = (1 << 53) - 1;

/// The meter that every request has.
const REQUESTS: &str = "requests";

/// Amounts by meter, each meter once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterAmounts {
    amounts: Vec<(Arc<str>, u64)>,
}

impl MeterAmounts {
    /// Adds to a meter.
    pub fn add(&mut self, meter: &Arc<str>, amount: u64) {
        match self.amounts.iter_mut().find(|(name, _)| name == meter) {
            Some((_, sum)) => *sum = sum.saturating_add(amount).min(AMOUNT_MAX),
            None => self.amounts.push((meter.clone(), amount.min(AMOUNT_MAX))),
        }
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, other: &MeterAmounts) {
        other.amounts.iter().for_each(|(meter, amount)| self.add(meter, *amount));
    }

    /// The amount of a meter, if it is charged.
    pub fn get(&self, meter: &str) -> Option<u64> {
        self.amounts.iter().find(|(name, _)| &**name == meter).map(|(_, amount)| *amount)
    }

    /// The amount of the meter `requests`, which is 1 where the route says nothing.
    pub fn requests(&self) -> u64 {
        self.get(REQUESTS).unwrap_or(1)
    }

    /// The amounts of all meters.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.amounts.iter().map(|(name, amount)| (&**name, *amount))
    }

    /// The amounts of all other meters, as a request carries them.
    pub fn others(&self) -> impl Iterator<Item = (&str, u64)> {
        self.iter().filter(|(name, _)| *name != REQUESTS)
    }
}
