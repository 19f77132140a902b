//! Draws the keys of requests.

use crate::plan::Popularity;

/// Draws key numbers from 0; the same seed gives the same sequence.
#[derive(Clone, Debug)]
pub struct KeySampler {
    state: u64,
    number: u64,
    zipf: Option<Zipf>,
}

impl KeySampler {
    /// Draws from `number` keys.
    pub fn new(number: u64, popularity: Popularity, seed: u64) -> KeySampler {
        let zipf = match popularity {
            Popularity::Uniform => None,
            Popularity::Zipf(exponent) => Some(Zipf::new(number, exponent)),
        };
        KeySampler { state: seed, number: number.max(1), zipf }
    }

    /// The next key.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        match self.zipf {
            None => ((u128::from(self.random()) * u128::from(self.number)) >> 64) as u64,
            Some(zipf) => zipf.draw(|| self.part()),
        }
    }

    /// SplitMix64: full period for every seed, and cheap.
    #[inline]
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in the range 0..1.
    fn part(&mut self) -> f64 {
        (self.random() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Zipf's law by rejection-inversion (Hörmann and Derflinger 1996): needs no table for any number of keys.
#[derive(Clone, Copy, Debug)]
struct Zipf {
    number: f64,
    exponent: f64,
    area_first: f64,
    area_last: f64,
    /// Within this distance a rank is accepted without evaluating the curve.
    sure: f64,
}

impl Zipf {
    fn new(number: u64, exponent: f64) -> Zipf {
        let number = number.max(1) as f64;
        let mut zipf = Zipf { number, exponent, area_first: 0.0, area_last: 0.0, sure: 0.0 };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(number + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.area(2.5) - zipf.weight(2.0));
        zipf
    }

    fn draw(self, mut part: impl FnMut() -> f64) -> u64 {
        loop {
            let area = self.area_last + part() * (self.area_first - self.area_last);
            let place = self.inverse(area);
            let rank = place.round().clamp(1.0, self.number);
            if rank - place <= self.sure || area >= self.area(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn weight(self, place: f64) -> f64 {
        place.powf(-self.exponent)
    }

    /// The integral of the weight up to `place`.
    fn area(self, place: f64) -> f64 {
        match 1.0 - self.exponent {
            rest if rest.abs() < 1e-9 => place.ln(),
            rest => (place.powf(rest) - 1.0) / rest,
        }
    }

    fn inverse(self, area: f64) -> f64 {
        match 1.0 - self.exponent {
            rest if rest.abs() < 1e-9 => area.exp(),
            rest => (1.0 + area * rest).max(f64::MIN_POSITIVE).powf(1.0 / rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(number: u64, popularity: Popularity, draws: usize) -> Vec<usize> {
        let mut keys = KeySampler::new(number, popularity, 7);
        let mut counts = vec![0; number as usize];
        (0..draws).for_each(|_| counts[keys.draw() as usize] += 1);
        counts
    }

    #[test]
    fn uniform_keys_are_equally_frequent() {
        let counts = counts(10, Popularity::Uniform, 100_000);
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn zipf_keys_are_weighted_by_rank() {
        for exponent in [0.8, 1.0, 1.2] {
            let counts = counts(1_000, Popularity::Zipf(exponent), 200_000);
            for rank in [2_usize, 5, 10] {
                let expected = counts[0] as f64 * (rank as f64).powf(-exponent);
                let found = counts[rank - 1] as f64;
                assert!((found / expected - 1.0).abs() < 0.1, "{exponent}: rank {rank} {found} of {expected}");
            }
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_keys() {
        let draw = |seed| {
            let mut keys = KeySampler::new(1_000_000, Popularity::Uniform, seed);
            std::array::from_fn::<u64, 8, _>(|_| keys.draw())
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn one_key_is_always_the_same() {
        assert_eq!(counts(1, Popularity::Zipf(1.0), 10), [10]);
        assert_eq!(counts(1, Popularity::Uniform, 10), [10]);
    }
}
