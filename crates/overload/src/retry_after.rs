//! When to come back after a 503: thirty seconds, and more for some, so that callers shed together do not return
//! together.

use tollgate_core::Span;

use crate::chance::below;

/// Whole seconds for `Retry-After`: from `base` (30 s is usual) up to half as long again; `random` selects.
pub fn retry_after_overload(base: Span, random: u64) -> u64 {
    let first = base.secs_ceil().max(1);
    let last = first.saturating_add(first.div_ceil(2));
    first + below(last - first + 1, random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_only_adds() {
        let secs = |random| retry_after_overload(Span::from_secs(30), random);
        assert_eq!([secs(0), secs(u64::MAX / 2), secs(u64::MAX)], [30, 37, 45]);
        assert_eq!(retry_after_overload(Span::ZERO, 0), 1);
        assert!(retry_after_overload(Span::from_nanos(u64::MAX), u64::MAX) >= u64::MAX / 1_000_000_000);
    }
}
