//! Draws the next key: uniformly, or by Zipf's law.

/// Digits of a key's number.
pub const DIGITS: usize = 12;

/// Draws key numbers, the same ones for the same seed.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    state: u64,
    keys: u64,
}

impl Draw {
    /// Draws from this many keys. Neighbouring seeds give unrelated sequences.
    pub fn new(keys: u64, seed: u64) -> Draw {
        Draw { state: mix(mix(seed)), keys }
    }

    /// A number below that of keys, all alike.
    #[inline]
    pub fn number(&mut self) -> u64 {
        ((u128::from(self.random()) * u128::from(self.keys)) >> 64) as u64
    }

    /// The same, spelled out.
    #[inline]
    pub fn digits(&mut self) -> [u8; DIGITS] {
        digits(self.number())
    }

    /// From 0 up to 1.
    #[inline]
    pub fn part(&mut self) -> f64 {
        (self.random() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// SplitMix64: full period whatever the seed.
    #[inline]
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(STEP);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A number in twelve digits.
#[inline]
pub fn digits(mut number: u64) -> [u8; DIGITS] {
    let mut digits = [b'0'; DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    digits
}

/// Ranks by Zipf's law: the n-th key comes in proportion to n to the power of minus the exponent.
#[derive(Clone, Debug)]
pub struct Zipf(Vec<f64>);

impl Zipf {
    pub fn new(keys: usize, exponent: f64) -> Zipf {
        let mut sum = 0.0;
        let mut sums: Vec<f64> = (1..=keys)
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        sums.iter_mut().for_each(|part| *part /= sum);
        Zipf(sums)
    }

    /// A rank, from 0 on.
    pub fn rank(&self, draw: &mut Draw) -> u64 {
        let part = draw.part();
        self.0.partition_point(|sum| *sum <= part) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_number() {
        assert_eq!(&digits(12_345), b"000000012345");
    }

    #[test]
    fn callers_side_by_side_ask_for_different_users() {
        let draws = |seed| {
            let mut draw = Draw::new(1_000_000, seed);
            std::iter::repeat_with(move || draw.number()).take(200).collect::<Vec<u64>>()
        };
        let users: std::collections::HashSet<u64> = (0..64).flat_map(draws).collect();
        assert!(users.len() > 12_500, "{} of 12,800", users.len());
    }

    #[test]
    fn the_second_rank_comes_half_as_often_as_the_first() {
        let (zipf, mut draw) = (Zipf::new(100, 1.0), Draw::new(1, 7));
        let mut counts = [0_u32; 100];
        (0..100_000).for_each(|_| counts[zipf.rank(&mut draw) as usize] += 1);
        let ratio = f64::from(counts[0]) / f64::from(counts[1]);
        assert!((1.9..2.1).contains(&ratio), "{ratio}");
    }
}
