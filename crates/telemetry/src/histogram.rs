//! A distribution as metrics show it.

/// Counts of values under bounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramFigures {
    /// All values together.
    pub sum: f64,
    /// How many there were.
    pub count: u64,
    /// How many fell under each bound and not under the one before; the last bound is infinity.
    pub buckets: Vec<(f64, u64)>,
}
