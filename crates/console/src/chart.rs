//! Charts as SVG, drawn on the server: bars stacked over time, with a limit.
//!
//! Only shapes are SVG; labels are text of the page, so that the drawing can stretch to any width without them. The values
//! travel in attributes for the script's pointer, and in a table for readers without it.

use std::fmt::Write as _;

use maud::{Markup, html};

use crate::format::{axis_time, clock_time, duration, short};

/// The drawing's own units.
const WIDTH: u64 = 1200;
const HEIGHT: u64 = 200;

/// Values over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chart<'a> {
    /// What it shows.
    pub(crate) title: &'a str,
    /// The start of the first bar, in milliseconds since 1970.
    pub(crate) start_ms: u64,
    /// How long a bar is.
    pub(crate) step_ms: u64,
    /// What is stacked, from below.
    pub(crate) series: Vec<BarSeries<'a>>,
    /// A line across, and what it is.
    pub(crate) limit: Option<(u64, &'a str)>,
}

/// The values of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct BarSeries<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its colour, a class of the style sheet.
    pub(crate) class: &'a str,
    /// One value for each bar.
    pub(crate) values: Vec<u64>,
}

impl BarSeries<'_> {
    fn total(&self) -> u64 {
        self.values.iter().fold(0, |total, value| total.saturating_add(*value))
    }
}

impl Chart<'_> {
    /// The chart with its legend and axes.
    pub(crate) fn markup(&self) -> Markup {
        let (bars, top) = (self.bars(), self.top());
        let end_ms = self.start_ms + self.step_ms * bars as u64;
        let values: Vec<String> =
            self.series.iter().map(|series| format!("{}={}", series.name, joined(&series.values))).collect();
        html! {
            figure class="chart" data-start=(self.start_ms) data-step=(self.step_ms) data-values=(values.join(";")) {
                figcaption {
                    span class="title" { (self.title) }
                    @for series in &self.series {
                        span class="key" {
                            i class={ "swatch " (series.class) } {} (series.name) " " b { (short(series.total())) }
                        }
                    }
                    @if let Some((limit, name)) = self.limit {
                        span class="key" { i class="swatch line" {} (name) " " b { (short(limit)) } }
                    }
                }
                div class="plot" {
                    span class="top" { (short(top)) " in " (duration(self.step_ms)) }
                    svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(self.spoken()) {
                        @for part in 1..4u64 {
                            line class="grid" x1="0" x2=(WIDTH) y1=(HEIGHT * part / 4) y2=(HEIGHT * part / 4) {}
                        }
                        @for place in 0..self.series.len() {
                            path class={ "bar " (self.series.get(place).map_or("", |series| series.class)) } d=(self.path(place, top)) {}
                        }
                        @if let Some((limit, _)) = self.limit {
                            @let y = HEIGHT - scaled(limit, top);
                            line class="limit" x1="0" x2=(WIDTH) y1=(y) y2=(y) {}
                        }
                    }
                }
                div class="axis" aria-hidden="true" {
                    @for part in 0..=2u64 { span { (axis_time(self.start_ms + (end_ms - self.start_ms) * part / 2, end_ms - self.start_ms)) @if part == 2 { " UTC" } } }
                }
            }
        }
    }

    fn bars(&self) -> usize {
        self.series.iter().map(|series| series.values.len()).max().unwrap_or(0)
    }

    /// The value at the upper edge: the highest stack, or the limit, rounded up to one or two digits.
    fn top(&self) -> u64 {
        let stack = |bar: usize| self.below(bar, self.series.len());
        let highest = (0..self.bars()).map(stack).max().unwrap_or(0);
        rounded_up(highest.max(self.limit.map_or(0, |(limit, _)| limit)).max(1))
    }

    /// The height of a bar below a series.
    fn below(&self, bar: usize, place: usize) -> u64 {
        let values = self.series.iter().take(place).filter_map(|series| series.values.get(bar));
        values.fold(0, |sum, value| sum.saturating_add(*value))
    }

    /// The bars of a series, as one path.
    fn path(&self, place: usize, top: u64) -> String {
        let (mut path, bars) = (String::new(), self.bars() as u64);
        for bar in 0..self.bars() {
            let (from, to) = (scaled(self.below(bar, place), top), scaled(self.below(bar, place + 1), top));
            let (left, right) = (WIDTH * bar as u64 / bars, WIDTH * (bar as u64 + 1) / bars);
            let gap = (right - left) / 5;
            // What happened is seen, however little it was.
            let is_there = self.below(bar, place + 1) > self.below(bar, place);
            let height = if is_there { (to - from).max(2) } else { 0 };
            if height > 0 {
                let width = right - left - gap;
                let _ = write!(path, "M{left} {}h{width}v-{height}h-{width}z", HEIGHT - from);
            }
        }
        path
    }

    /// The chart in a sentence.
    fn spoken(&self) -> String {
        let totals = self.series.iter().map(|series| format!("{} {}", series.total(), series.name));
        let totals: Vec<String> = totals.collect();
        format!("{}, from {}: {}", self.title, clock_time(self.start_ms), totals.join(", "))
    }
}

/// A bar from 0 to 1000 thousandths, for tables.
pub(crate) fn meter(part: u64, whole: u64, class: &str) -> Markup {
    let share = u64::try_from(u128::from(part) * 1000 / u128::from(whole.max(1))).unwrap_or(1000).min(1000);
    html! {
        svg class={ "meter " (class) } viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" {
            rect class="track" width="1000" height="10" {}
            rect class="fill" width=(share) height="10" {}
        }
    }
}

fn scaled(value: u64, top: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(HEIGHT) / u128::from(top.max(1))).unwrap_or(HEIGHT).min(HEIGHT)
}

/// 1, 2, 3, 4, 5, 6, 8, 10, 12, … times a power of ten.
fn rounded_up(value: u64) -> u64 {
    let mut unit: u64 = 1;
    while value / unit >= 20 {
        unit = unit.saturating_mul(10);
    }
    value.div_ceil(unit).next_multiple_of(if value / unit >= 10 { 2 } else { 1 }).saturating_mul(unit)
}

fn joined(values: &[u64]) -> String {
    values.iter().map(u64::to_string).collect::<Vec<String>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(allowed: &[u64], denied: &[u64]) -> Chart<'static> {
        let series = |name, values: &[u64]| BarSeries { name, class: name, values: values.to_vec() };
        Chart {
            title: "requests",
            start_ms: 0,
            step_ms: 1000,
            series: vec![series("allowed", allowed), series("denied", denied)],
            limit: None,
        }
    }

    #[test]
    fn bars_stand_on_each_other() {
        let chart = chart(&[5, 0], &[5, 10]);
        assert_eq!(chart.top(), 10);
        assert_eq!(chart.path(0, 10), "M0 200h480v-100h-480z");
        assert_eq!(chart.path(1, 10), "M0 100h480v-100h-480zM600 200h480v-200h-480z");
        assert_eq!(chart.spoken(), "requests, from 00:00:00: 5 allowed, 15 denied");
    }

    #[test]
    fn one_among_millions_is_seen() {
        assert_eq!(chart(&[3_000_000], &[1]).path(1, 3_000_000), "M0 0h960v-2h-960z");
    }

    #[test]
    fn nothing_is_drawn_without_values_and_nothing_overflows() {
        assert!(chart(&[], &[]).markup().into_string().contains("<figure"));
        let high = chart(&[u64::MAX, 1], &[u64::MAX, u64::MAX]);
        assert!(high.markup().into_string().contains("<path"));
        assert_eq!(
            [0, 1, 9, 10, 11, 13, 19, 21, 190, 199, 201].map(rounded_up),
            [0, 1, 9, 10, 12, 14, 20, 30, 200, 200, 300]
        );
    }

    #[test]
    fn names_are_escaped() {
        let mut chart = chart(&[1], &[1]);
        chart.title = "\"><img onerror=alert(1)>";
        assert!(!chart.markup().into_string().contains("<img"));
    }
}
