//! The tables.

use crate::simulation::Outcome;

/// What the upstream can do alone, at the load that suits it best.
pub struct Peak {
    pub goodput: f64,
    pub p99_ms: f64,
}

/// One line.
pub struct Row<'a> {
    pub name: &'a str,
    pub times: f64,
    pub outcome: &'a Outcome,
    pub peak: &'a Peak,
}

pub fn head() {
    println!("| protection | offered | goodput of peak | p99 | p99 of peak | critical served | limit at the end |");
    println!("|---|---|---|---|---|---|---|");
}

pub fn row(row: &Row<'_>) {
    let Row { name, times, outcome, peak } = row;
    let goodput = 100.0 * outcome.goodput() / peak.goodput;
    let (p99, ratio) = match outcome.p99_ms() {
        p99 if p99.is_nan() => ("–".to_owned(), "–".to_owned()),
        p99 => (format!("{p99:.0} ms"), format!("{:.1} ×", p99 / peak.p99_ms)),
    };
    let (critical, limit) = (outcome.critical_percent(), outcome.limit);
    let limit = if limit == 0 { "–".to_owned() } else { limit.to_string() };
    println!("| {name} | {times} × | {goodput:.0} % | {p99} | {ratio} | {critical:.2} % | {limit} |");
}
