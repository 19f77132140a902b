//! Results as a table in Markdown, for terminals and for `bench/results`.

use std::fmt::Write;
use std::time::Duration;

use super::{FaultRow, RowResult};

/// One line per row.
pub fn table(results: &[(&FaultRow, RowResult, Duration)]) -> String {
    let mut text =
        "| row | fault | admitted | bound | verdict | seconds | notes |\n|---|---|--:|--:|---|--:|---|\n".to_owned();
    for (row, outcome, took) in results {
        let verdict = if outcome.held() { "held" } else { "**BROKEN**" };
        let notes: Vec<&str> = outcome.broken.iter().chain(&outcome.remarks).map(String::as_str).collect();
        let notes = notes.join("; ").replace('|', "\\|").replace('\n', " ");
        let (RowResult { admitted, bound, .. }, seconds) = (outcome, took.as_secs_f64());
        let _ = writeln!(
            text,
            "| {} | {} | {admitted} | {bound} | {verdict} | {seconds:.1} | {notes} |",
            row.id, row.title
        );
    }
    text
}
