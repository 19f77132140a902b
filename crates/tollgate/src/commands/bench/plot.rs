//! Text plots: the distribution of latencies, and the rate over time.

use std::time::Duration;

use tollgate_load::{LatencyHistogram, Second};
use tollgate_terminal::{grouped, short_time};

/// Length of the longest bar.
const WIDTH: usize = 50;
/// Maximum rows of the rate plot; longer runs are grouped.
const ROWS: usize = 30;
/// Upper edges of the latency rows, within a factor of ten.
const STEPS: [u64; 6] = [10, 15, 20, 30, 50, 70];

/// A row of a plot: its label, its value, and the value as text.
struct Bar {
    label: String,
    value: f64,
    text: String,
}

/// Numbers of replies by upper edge, from the first row with replies to the last.
pub fn buckets(latency: &LatencyHistogram) -> Vec<(Duration, u64)> {
    let scales = (0..9).map(|power| 10_u64.pow(power));
    let edges = scales.flat_map(|scale| STEPS.map(|step| Duration::from_nanos(step * 10 * scale)));
    let mut from = Duration::ZERO;
    let mut rows: Vec<(Duration, u64)> = edges
        .map(|edge| {
            let row = (edge, latency.between(from, edge));
            from = edge;
            row
        })
        .skip_while(|(_, count)| *count == 0)
        .collect();
    let used = rows.iter().rposition(|(_, count)| *count > 0).map_or(0, |last| last + 1);
    rows.truncate(used);
    rows
}

/// The distribution of latencies, on a logarithmic scale.
pub fn latency(latency: &LatencyHistogram) -> String {
    let all = latency.len().max(1) as f64;
    let bar = |(edge, count): (Duration, u64)| Bar {
        label: short_time(edge),
        value: count as f64,
        text: format!("{:.2} %", count as f64 / all * 100.0),
    };
    draw(&buckets(latency).into_iter().map(bar).collect::<Vec<_>>())
}

/// The rate over time.
pub fn rate(seconds: &[Second]) -> String {
    let together = seconds.len().div_ceil(ROWS).max(1);
    let bar = |group: &[Second]| {
        let rate = group.iter().map(|second| second.rate).sum::<f64>() / group.len().max(1) as f64;
        let at = group.last().map_or(0.0, |second| second.at);
        let label = if at < 1.0 { format!("{at:.1}s") } else { format!("{at:.0}s") };
        Bar { label, value: rate, text: format!("{}/s", grouped(rate.round() as u64)) }
    };
    draw(&seconds.chunks(together).map(bar).collect::<Vec<_>>())
}

fn draw(bars: &[Bar]) -> String {
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let label_width = bars.iter().map(|bar| bar.label.len()).max().unwrap_or(0).max(7);
    let text_width = bars.iter().map(|bar| bar.text.len()).max().unwrap_or(0);
    let line = |bar: &Bar| {
        let length = if most > 0.0 { (bar.value / most * WIDTH as f64).round() as usize } else { 0 };
        // Rare values get a bar too: slow outliers matter most.
        let length = if bar.value > 0.0 { length.max(1) } else { 0 };
        let line = format!("  {:>label_width$}  {:>text_width$}  {}", bar.label, bar.text, "#".repeat(length));
        format!("{}\n", line.trim_end())
    };
    bars.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(at: f64, rate: f64) -> Second {
        Second { at, rate, allowed: 0, denied: 0, errors: 0, p50: Duration::ZERO, p99: Duration::ZERO }
    }

    #[test]
    fn the_longest_bar_fills_the_width() {
        let drawn = rate(&[second(1.0, 1_000.0), second(2.0, 500.0), second(3.0, 1.0), second(4.0, 0.0)]);
        let expected = format!(
            "       1s  1,000/s  {}\n       2s    500/s  {}\n       3s      1/s  #\n       4s      0/s\n",
            "#".repeat(50),
            "#".repeat(25)
        );
        assert_eq!(drawn, expected);
    }

    #[test]
    fn a_long_run_is_grouped() {
        let seconds: Vec<Second> = (1..=3_600).map(|at| second(f64::from(at), 10.0)).collect();
        assert_eq!(rate(&seconds).lines().count(), ROWS);
    }

    #[test]
    fn no_seconds_draw_nothing() {
        assert_eq!(rate(&[]), "");
    }
}
