//! The report: tables of times, and ratios with their targets.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::statistics::Sample;

/// A report in Markdown, written while measuring.
#[derive(Debug)]
pub struct BenchReport {
    title: String,
    body: String,
    targets: Vec<Target>,
}

/// The bound of a ratio or a number.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// No more.
    AtMost(f64),
    /// No less.
    AtLeast(f64),
}

#[derive(Debug)]
struct Target {
    what: String,
    bound: Bound,
    measured: f64,
    spread: f64,
}

impl BenchReport {
    /// An empty report.
    pub fn new(title: &str) -> BenchReport {
        BenchReport { title: title.to_owned(), body: String::new(), targets: Vec::new() }
    }

    /// A heading with an introduction.
    pub fn section(&mut self, heading: &str, text: &str) {
        let _ = write!(self.body, "\n## {heading}\n\n{text}\n");
        progress(&format!("# {heading}"));
    }

    /// A heading below that.
    pub fn part(&mut self, heading: &str, text: &str) {
        let _ = write!(self.body, "\n### {heading}\n\n{text}");
        progress(&format!("## {heading}"));
    }

    /// A paragraph below a table.
    pub fn note(&mut self, text: &str) {
        let _ = write!(self.body, "\n{text}\n");
    }

    /// A table; the first column is text, the others are numbers.
    pub fn table(&mut self, heads: &[&str], rows: &[Vec<String>]) {
        let mut lines = vec![heads.iter().map(|head| (*head).to_owned()).collect::<Vec<_>>()];
        lines.extend(rows.iter().cloned());
        let widths: Vec<usize> = (0..heads.len())
            .map(|column| {
                lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        self.body.push('\n');
        for (number, line) in lines.iter().enumerate() {
            let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            let _ = writeln!(self.body, "| {} |", cells.collect::<Vec<_>>().join(" | "));
            if number == 0 {
                let rulers = widths.iter().enumerate().map(|(column, width)| match column {
                    0 => "-".repeat(*width),
                    _ => format!("{}:", "-".repeat(width.saturating_sub(1))),
                });
                let _ = writeln!(self.body, "| {} |", rulers.collect::<Vec<_>>().join(" | "));
            }
        }
    }

    /// Compares a ratio, taken round by round, with its target.
    pub fn ratio(&mut self, what: &str, bound: Bound, ratios: &Sample) {
        let (measured, spread) = (ratios.median(), ratios.spread_percent());
        self.targets.push(Target { what: what.to_owned(), bound, measured, spread });
    }

    /// Compares a single number with its target.
    pub fn number(&mut self, what: &str, bound: Bound, measured: f64) {
        self.targets.push(Target { what: what.to_owned(), bound, measured, spread: 0.0 });
    }

    /// The whole text: machine, targets first, then the tables.
    pub fn finish(self, machine: &str) -> String {
        let BenchReport { title, body, targets } = self;
        let mut head = BenchReport::new("");
        if !targets.is_empty() {
            let rows: Vec<Vec<String>> = targets.iter().map(Target::row).collect();
            head.section("Targets", "Ratios are medians over rounds; ± is the distance between their quartiles.");
            head.table(&["what", "target", "measured", "±", "verdict"], &rows);
            let missed = targets.iter().filter(|target| !target.is_met()).count();
            let _ = writeln!(head.body, "\n{} of {} targets met.", targets.len() - missed, targets.len());
        }
        format!("# Benchmark: {title}\n\n{machine}\n{}{body}", head.body)
    }
}

impl Target {
    fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtMost(most) => self.measured <= most,
            Bound::AtLeast(least) => self.measured >= least,
        }
    }

    fn row(&self) -> Vec<String> {
        let bound = match self.bound {
            Bound::AtMost(most) => format!("≤ {most}"),
            Bound::AtLeast(least) => format!("≥ {least}"),
        };
        let spread = if self.spread > 0.0 { format!("{:.0} %", self.spread) } else { String::new() };
        let verdict = if self.is_met() { "PASS" } else { "MISS" };
        vec![self.what.clone(), bound, format!("{:.2}", self.measured), spread, verdict.to_owned()]
    }
}

/// Prints progress to standard error.
pub fn progress(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// `10 M`, `100 k`, `1`.
pub fn short(number: usize) -> String {
    match number {
        n if n >= 1_000_000 && n % 100_000 == 0 => format!("{} M", n as f64 / 1e6),
        n if n >= 1_000 && n % 100 == 0 => format!("{} k", n as f64 / 1e3),
        n => n.to_string(),
    }
}
