//! From values to places, and where the ticks stand.

/// How values become distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps for equal differences, starting at zero.
    Linear,
    /// Equal steps for equal factors.
    Log10,
}

/// One axis: the values it spans and the places they have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    scale: Scale,
    /// In the scale's own measure: logarithms, for `Log10`.
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

/// About how many ticks a linear axis has.
const TICKS: f64 = 6.0;

impl Axis {
    /// An axis that shows all `values` between the places `start` and `end`.
    pub(super) fn new(scale: Scale, values: impl Iterator<Item = f64>, start: f64, end: f64) -> Axis {
        let measured = values.map(|value| measure(scale, value)).filter(|value| value.is_finite());
        let (low, high) = measured.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        let (from, to) = match scale {
            Scale::Linear => {
                let step = step(low.min(0.0), high.max(0.0));
                ((low.min(0.0) / step).floor() * step, (high.max(0.0) / step).ceil() * step)
            }
            Scale::Log10 => (nice_below(low), nice_above(high)),
        };
        let to = if to > from { to } else { from + 1.0 };
        Axis { scale, from, to, start, end }
    }

    /// Where a value stands.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = measure(self.scale, value);
        if !value.is_finite() {
            return self.start;
        }
        self.start + (value - self.from) / (self.to - self.from) * (self.end - self.start)
    }

    /// Places and names of the ticks.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => {
                let step = step(self.from, self.to);
                let count = ((self.to - self.from) / step).round() as i32;
                let values = (0..=count).map(|number| self.from + f64::from(number) * step);
                values.map(|value| (self.place(value), name(value))).collect()
            }
            Scale::Log10 => {
                let decades = self.from.floor() as i32..=self.to.ceil() as i32;
                let wide = self.to - self.from > 2.5;
                let factors: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let values = decades.flat_map(|decade| factors.iter().map(move |factor| factor * 10_f64.powi(decade)));
                let within = |value: &f64| (self.from - 1e-9..=self.to + 1e-9).contains(&value.log10());
                values.filter(within).map(|value| (self.place(value), name(value))).collect()
            }
        }
    }
}

fn measure(scale: Scale, value: f64) -> f64 {
    match scale {
        Scale::Linear => value,
        Scale::Log10 => value.log10(),
    }
}

/// One, two or five times a power of ten, so that about [`TICKS`] of them span the range.
fn step(low: f64, high: f64) -> f64 {
    let rough = ((high - low) / TICKS).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough * 0.999).unwrap_or(power)
}

/// The logarithm of the next one, two or five times a power of ten below.
fn nice_below(log: f64) -> f64 {
    nice(log).into_iter().rev().find(|nice| *nice <= log + 1e-9).unwrap_or(log)
}

/// The logarithm of the next one, two or five times a power of ten above.
fn nice_above(log: f64) -> f64 {
    nice(log).into_iter().find(|nice| *nice >= log - 1e-9).unwrap_or(log)
}

fn nice(log: f64) -> [f64; 4] {
    let decade = log.floor();
    [decade, decade + 2_f64.log10(), decade + 5_f64.log10(), decade + 1.0]
}

/// `1`, `0.5`, `20 k`, `10 M`.
fn name(value: f64) -> String {
    let (value, unit) = match value.abs() {
        size if size >= 1e6 => (value / 1e6, " M"),
        size if size >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{}{unit}", if text == "-0" { "0" } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn a_linear_axis_starts_at_zero_and_counts_in_round_steps() {
        let axis = Axis::new(Scale::Linear, [3.0, 11.0].into_iter(), 0.0, 100.0);
        assert_eq!(names(&axis), ["0", "2", "4", "6", "8", "10", "12"]);
        assert_eq!((axis.place(0.0), axis.place(12.0)), (0.0, 100.0));
    }

    #[test]
    fn a_wide_logarithmic_axis_counts_decades_and_a_narrow_one_in_between() {
        let wide = Axis::new(Scale::Log10, [1e3, 1e7].into_iter(), 0.0, 100.0);
        assert_eq!(names(&wide), ["1000", "10 k", "100 k", "1 M", "10 M"]);
        let narrow = Axis::new(Scale::Log10, [60.0, 450.0].into_iter(), 0.0, 100.0);
        assert_eq!(names(&narrow), ["50", "100", "200", "500"]);
    }

    #[test]
    fn values_that_have_no_place_do_not_stretch_the_axis() {
        let axis = Axis::new(Scale::Log10, [f64::NAN, 0.0, 10.0, 100.0].into_iter(), 0.0, 100.0);
        assert_eq!((axis.place(10.0), axis.place(0.0), axis.place(100.0)), (0.0, 0.0, 100.0));
    }
}
