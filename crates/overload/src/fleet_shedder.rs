//! The fleet usage shedder: a share of the fleet's concurrency is left for critical requests (SPEC 5.9).
//!
//! The count is a concurrency rule on one global key; this is the arithmetic over the numbers of its decision.

/// Whether one more request may run, when `in_use` of `capacity` slots are taken. `reserved_percent` of the capacity,
/// rounded up, is for critical requests; 20 is usual.
pub fn fleet_admits(in_use: u64, capacity: u64, reserved_percent: u32, is_critical: bool) -> bool {
    let reserved = (u128::from(capacity) * u128::from(reserved_percent.min(100))).div_ceil(100);
    let reserved = u64::try_from(reserved).unwrap_or(capacity);
    in_use < if is_critical { capacity } else { capacity.saturating_sub(reserved) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_rounded_up() {
        assert!(fleet_admits(1, 3, 20, false) && !fleet_admits(2, 3, 20, false));
        assert!(fleet_admits(2, 3, 20, true) && !fleet_admits(3, 3, 20, true));
    }

    #[test]
    fn extremes_do_not_overflow() {
        assert!(fleet_admits(u64::MAX - 1, u64::MAX, 0, false));
        assert!(!fleet_admits(0, u64::MAX, u32::MAX, false) && fleet_admits(0, u64::MAX, u32::MAX, true));
        assert!(!fleet_admits(0, 0, 20, true));
    }
}
