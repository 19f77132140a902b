//! A distribution as metrics show it.

/// Counts of values by upper bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramFigures {
    /// Sum of all values.
    pub sum: f64,
    /// Number of values.
    pub count: u64,
    /// Number of values under each bound and above the previous one; the last bound is infinity.
    pub buckets: Vec<(f64, u64)>,
}
