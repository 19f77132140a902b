//! The tables and the picture.

use std::fmt::Write as _;

use super::{MeasuredPeak, OverloadRow, TIMES};
use crate::plot::{Plot, Scale, stacked};

const GOODPUT_MIN: f64 = 0.9;
const P99_MAX: f64 = 2.0;
const CRITICAL_MIN: f64 = 0.999;

/// Every row, as Markdown.
pub fn table(peak: &MeasuredPeak, rows: &[OverloadRow]) -> String {
    let mut text = String::from(
        "| shedding | offered | goodput | of peak | p50 | p99 | of peak | critical served | sheddable served | shed with 503 |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for row in rows {
        let outcome = &row.outcome;
        let (critical, sheddable) = (&outcome.critical, &outcome.sheddable);
        let ms = |part: f64| match outcome.quantile(part).as_millis() {
            0 => "–".to_owned(),
            millis => format!("{millis} ms"),
        };
        let _ = writeln!(
            text,
            "| {} | {} × | {:.0}/s | {:.0} % | {} | {} | {:.1} × | {:.2} % | {:.1} % | {} |",
            if row.is_shedding { "on" } else { "off" },
            row.times,
            outcome.goodput(),
            goodput_ratio(peak, row) * 100.0,
            ms(0.5),
            ms(0.99),
            p99_ratio(peak, row),
            critical.served_share() * 100.0,
            sheddable.served_share() * 100.0,
            critical.shed + sheddable.shed,
        );
    }
    text
}

/// The goals, as Markdown, and whether all are reached.
pub fn goals(peak: &MeasuredPeak, rows: &[OverloadRow]) -> (String, bool) {
    let mut text = String::from("| goal | measured | |\n|---|---|---|\n");
    let mut all = true;
    let mut goal = |words: &str, measured: String, reached: bool| {
        all &= reached;
        let _ = writeln!(text, "| {words} | {measured} | {} |", if reached { "PASS" } else { "MISS" });
    };
    let shedding = || rows.iter().filter(|row| row.is_shedding);
    if let Some(row) = shedding().find(|row| row.times == TIMES[TIMES.len() - 1]) {
        let (goodput, p99) = (goodput_ratio(peak, row), p99_ratio(peak, row));
        goal(
            "goodput at ten times the peak ≥ 90 % of the peak's",
            format!("{:.0} %", goodput * 100.0),
            goodput >= GOODPUT_MIN,
        );
        goal("p99 of what is served then ≤ 2 × the peak's", format!("{p99:.2} ×"), p99 <= P99_MAX && p99 > 0.0);
    }
    for row in shedding().filter(|row| row.times > 1.0) {
        let (critical, sheddable) = (&row.outcome.critical, &row.outcome.sheddable);
        goal(
            &format!("critical requests served at {} × ≥ 99.9 %, while sheddable ones are shed", row.times),
            format!("{:.2} % of {}; {} shed", critical.served_share() * 100.0, critical.offered, sheddable.shed),
            critical.served_share() >= CRITICAL_MIN && sheddable.shed > 0,
        );
    }
    (text, all)
}

/// Offered load against goodput, and against latency.
pub fn plots(peak: &MeasuredPeak, rows: &[OverloadRow]) -> String {
    let series = |is_shedding: bool, value: &dyn Fn(&OverloadRow) -> f64| -> Vec<(f64, f64)> {
        let rows = rows.iter().filter(|row| row.is_shedding == is_shedding);
        rows.map(|row| (row.times, value(row))).filter(|(_, value)| value.is_finite()).collect()
    };
    let goodput = |row: &OverloadRow| row.outcome.goodput();
    // Nothing served has no latency.
    let p99 = |row: &OverloadRow| match row.outcome.p99().as_secs_f64() * 1e3 {
        0.0 => f64::NAN,
        millis => millis,
    };
    let above = Plot::new("Offered load, with shedding and without")
        .y("goodput, requests/s", Scale::Linear)
        .x("", Scale::Log10)
        .height(300.0)
        .line("with shedding", series(true, &goodput))
        .line("without", series(false, &goodput))
        .level("peak without", peak.outcome.goodput())
        .muted();
    let below = Plot::new("")
        .y("p99 of what is served, ms", Scale::Linear)
        .x("offered, in multiples of the peak", Scale::Log10)
        .height(300.0)
        .line("with shedding", series(true, &p99))
        .line("without", series(false, &p99))
        .level("twice the peak's", peak.outcome.p99().as_secs_f64() * 1e3 * P99_MAX)
        .muted();
    stacked(&[above, below])
}

fn goodput_ratio(peak: &MeasuredPeak, row: &OverloadRow) -> f64 {
    row.outcome.goodput() / peak.outcome.goodput()
}

fn p99_ratio(peak: &MeasuredPeak, row: &OverloadRow) -> f64 {
    row.outcome.p99().as_secs_f64() / peak.outcome.p99().as_secs_f64()
}
