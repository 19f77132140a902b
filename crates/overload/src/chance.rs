//! Random numbers as values: the caller passes 64 uniform bits, so that a test decides the outcome.

/// True with this probability.
pub(crate) fn happens(probability: f64, random: u64) -> bool {
    // 53 bits: what a double holds exactly.
    ((random >> 11) as f64) < probability * (1u64 << 53) as f64
}

/// A uniform number below `bound`; 0 if that is 0.
pub(crate) fn below(bound: u64, random: u64) -> u64 {
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}

/// A uniform double from `low` to `high`.
pub(crate) fn between(low: f64, high: f64, random: u64) -> f64 {
    low + (high - low) * ((random >> 11) as f64 / (1u64 << 53) as f64)
}

/// Other random bits made from one number (SplitMix64's finaliser).
pub(crate) fn mix(random: u64) -> u64 {
    let x = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certain_and_impossible_events_ignore_the_draw() {
        for random in [0, 1, u64::MAX / 2, u64::MAX] {
            assert!(!happens(0.0, random));
            assert!(!happens(-1.0, random));
            assert!(happens(1.0, random));
        }
        assert!(happens(0.5, (u64::MAX >> 1) - 4096) && !happens(0.5, u64::MAX >> 1 | 1 << 63));
    }

    #[test]
    fn draws_stay_in_their_range() {
        assert_eq!([below(10, 0), below(10, u64::MAX), below(0, u64::MAX)], [0, 9, 0]);
        assert_eq!(between(0.5, 1.0, 0), 0.5);
        assert_eq!(between(0.5, 1.0, u64::MAX), 1.0, "rounded up");
    }
}
