//! The middle and the spread of a handful of rounds.

/// Several measurements of one thing.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// The middle one.
    pub fn median(&self) -> f64 {
        self.at(0.5)
    }

    /// The distance between the lower and the upper quartile, in percent of the median.
    pub fn spread_percent(&self) -> f64 {
        match self.median() {
            0.0 => 0.0,
            median => (self.at(0.75) - self.at(0.25)) / median * 100.0,
        }
    }

    /// `self` divided by `other`, round by round: what drifts for both cancels out.
    pub fn over(&self, other: &Sample) -> Sample {
        self.0.iter().zip(&other.0).map(|(a, b)| a / b).collect()
    }

    fn at(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
        let place = part * last as f64;
        let at = |index: f64| sorted.get(index as usize).copied().unwrap_or(f64::NAN);
        let (low, high) = (at(place.floor()), at(place.ceil()));
        low + (high - low) * place.fract()
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Sample {
        Sample(values.into_iter().collect())
    }
}

impl Extend<f64> for Sample {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, values: I) {
        self.0.extend(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert_eq!(Sample::from_iter([4.0, 1.0, 3.0, 2.0]).median(), 2.5);
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let (a, b) = (Sample::from_iter([10.0, 40.0, 30.0]), Sample::from_iter([20.0, 80.0, 60.0]));
        assert_eq!((a.over(&b).median(), a.over(&b).spread_percent()), (0.5, 0.0));
    }
}
