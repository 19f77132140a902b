//! A ramp against a server: table, plot, the limits that it suggests, and all of it as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use tollgate_load::{LimitProposal, RampEnd, RampReport, RampStep, StepVerdict};

use crate::{Palette, grouped, short_time, visible};

/// Columns of the plot.
const PLOT: usize = 36;
const P50: char = '○';
const P99: char = '●';

/// A step in one line, for progress.
pub fn step_words(step: &RampStep) -> String {
    let RampStep { p50, p99, .. } = step;
    let verdict = verdict_words(step.verdict);
    format!("{}: p50 {}, p99 {}, {verdict}", rate(step.offered), short_time(*p50), short_time(*p99))
}

/// The steps by rate, with their latencies on a logarithmic scale and the knee marked, and what was found.
pub fn ramp_text(report: &RampReport, palette: Palette) -> String {
    let mut steps: Vec<&RampStep> = report.steps.iter().collect();
    steps.sort_by(|a, b| a.offered.total_cmp(&b.offered));
    let scale = LatencyScale::of(&steps);
    let heading = format!(
        "{:>10}  {:>10}  {:>9}  {:>7}  {:>7}  {:>7}  {}",
        "offered",
        "answered",
        "in flight",
        "p50 ○",
        "p99 ●",
        "failed",
        scale.heading()
    );
    let mut text = format!("{}\n", palette.strong(heading.trim_end()));
    for step in steps {
        let is_knee = report.knee().is_some_and(|knee| std::ptr::eq(knee, step));
        let _ = writeln!(text, "{}", step_row(step, &scale, is_knee, palette).trim_end());
    }
    let _ = write!(text, "\n{}", found(report, palette));
    text
}

fn step_row(step: &RampStep, scale: &LatencyScale, is_knee: bool, palette: Palette) -> String {
    let mark = match step.verdict {
        _ if is_knee => palette.good("◀ knee"),
        StepVerdict::KeptUp => String::new(),
        failed => palette.warn(verdict_words(failed)),
    };
    let failed = if step.failed > 0.0 { format!("{:.1} %", step.failed * 100.0) } else { "–".to_owned() };
    format!(
        "{:>10}  {:>10}  {:>9.1}  {:>7}  {:>7}  {failed:>7}  {:PLOT$}  {mark}",
        rate(step.offered),
        rate(step.answered),
        step.in_flight,
        short_time(step.p50),
        short_time(step.p99),
        scale.plot(step),
    )
}

/// What the ramp found, and why it ended.
fn found(report: &RampReport, palette: Palette) -> String {
    let mut text = String::new();
    match (report.knee(), report.best()) {
        (Some(knee), _) => {
            let line = format!("knee: {}, {:.1} requests in flight", rate(knee.offered), knee.in_flight);
            let _ = writeln!(text, "{}", palette.good(&line));
        }
        (None, Some(best)) => {
            let line = format!("no knee up to {}: it carries at least that", rate(best.offered));
            let _ = writeln!(text, "{}", palette.warn(&line));
        }
        (None, None) => {
            let _ = writeln!(text, "{}", palette.bad("it kept up with no rate that was offered"));
        }
    }
    let why = match report.end {
        RampEnd::Found => None,
        RampEnd::RateMax => Some("ended at the highest rate; --to allows more"),
        RampEnd::RequestsMax => Some("ended before the end of the search: --requests allows no more"),
        RampEnd::TimeMax => Some("ended before the end of the search: --time allows no more"),
        RampEnd::Unrecovered => Some("ended because it did not become fast again after a failed step"),
        RampEnd::TooSlow => Some("even one request per second is too much for it, or it answers with errors"),
    };
    text.extend(why.map(|why| format!("{why}\n")));
    let first = report.steps.iter().find_map(|step| step.first_error.as_deref());
    text.extend(first.map(|first| format!("first error: {}\n", visible(first.lines().next().unwrap_or_default()))));
    text
}

/// Files for `tollgate gateway` with these limits in front of a server.
pub fn proposal_yaml(proposal: &LimitProposal, server: &str, headroom_percent: u32) -> String {
    let LimitProposal { per_second, in_flight, in_flight_max } = proposal;
    format!(
        "\
# rules.yaml: all callers together, {headroom_percent} % below the knee
rules:
  - name: capacity
    key_by: global
    limit: {{ requests: {per_second}, window: 1s }}

# routes.yaml: starts with what was in flight at the knee, and follows the server from there
upstreams:
  measured:
    servers: [\"{server}\"]
    concurrency: {{ algorithm: gradient, initial: {in_flight}, max: {in_flight_max} }}
    queue: {{ max: 100, max_wait: 500ms }}
routes:
  - {{ upstream: measured }}
"
    )
}

/// Everything that was measured, and the limits.
pub fn ramp_json(report: &RampReport, proposal: Option<&LimitProposal>) -> Value {
    let end = match report.end {
        RampEnd::Found => "found",
        RampEnd::RateMax => "rate_max",
        RampEnd::RequestsMax => "requests_max",
        RampEnd::TimeMax => "time_max",
        RampEnd::Unrecovered => "unrecovered",
        RampEnd::TooSlow => "too_slow",
    };
    let proposal = proposal.map(|proposal| {
        json!({
            "requests_per_second": proposal.per_second,
            "concurrency": { "initial": proposal.in_flight, "max": proposal.in_flight_max },
        })
    });
    json!({
        "end": end,
        "knee": report.knee().map(step_json),
        "best": report.best().map(step_json),
        "baseline_p99_us": micros(report.baseline),
        "requests": report.requests,
        "proposal": proposal,
        "steps": report.steps.iter().map(step_json).collect::<Vec<_>>(),
    })
}

fn step_json(step: &RampStep) -> Value {
    json!({
        "offered": step.offered,
        "answered": step.answered,
        "in_flight": step.in_flight,
        "p50_us": micros(step.p50),
        "p99_us": micros(step.p99),
        "failed": step.failed,
        "verdict": match step.verdict {
            StepVerdict::KeptUp => "kept_up",
            StepVerdict::Slow => "slow",
            StepVerdict::Behind => "behind",
            StepVerdict::Failing => "failing",
        },
        "first_error": step.first_error,
    })
}

fn verdict_words(verdict: StepVerdict) -> &'static str {
    match verdict {
        StepVerdict::KeptUp => "keeps up",
        StepVerdict::Slow => "too slow",
        StepVerdict::Behind => "falls behind",
        StepVerdict::Failing => "fails",
    }
}

fn rate(per_second: f64) -> String {
    if per_second < 10.0 { format!("{per_second:.1}/s") } else { format!("{}/s", grouped(per_second.round() as u64)) }
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// From the smallest median to the largest 99th percentile, by logarithm.
struct LatencyScale {
    least: f64,
    most: f64,
}

impl LatencyScale {
    fn of(steps: &[&RampStep]) -> LatencyScale {
        let answered = || steps.iter().filter(|step| !step.p50.is_zero());
        let least = answered().map(|step| step.p50.as_secs_f64()).fold(f64::MAX, f64::min);
        let most = answered().map(|step| step.p99.as_secs_f64()).fold(0.0, f64::max);
        LatencyScale { least, most }
    }

    fn heading(&self) -> String {
        if self.most <= 0.0 {
            return String::new();
        }
        let [least, most] = [self.least, self.most].map(|seconds| short_time(Duration::from_secs_f64(seconds)));
        let gap = PLOT.saturating_sub(least.len() + most.len());
        format!("{least}{}{most}", " ".repeat(gap))
    }

    fn place(&self, time: Duration) -> usize {
        let part = (time.as_secs_f64() / self.least).ln() / (self.most / self.least).ln().max(f64::MIN_POSITIVE);
        ((part * (PLOT - 1) as f64).round().max(0.0) as usize).min(PLOT - 1)
    }

    fn plot(&self, step: &RampStep) -> String {
        if step.p50.is_zero() {
            return String::new();
        }
        let (p50, p99) = (self.place(step.p50), self.place(step.p99));
        let letter = |place: usize| match place {
            place if place == p99 => P99,
            place if place == p50 => P50,
            place if place > p50 && place < p99 => '·',
            _ => ' ',
        };
        (0..=p99).map(letter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(offered: f64, p50_ms: u64, p99_ms: u64, verdict: StepVerdict) -> RampStep {
        let (p50, p99) = (Duration::from_millis(p50_ms), Duration::from_millis(p99_ms));
        let failed = if verdict == StepVerdict::Failing { 0.25 } else { 0.0 };
        let first_error = (failed > 0.0).then(|| "HTTP/1.1 503 Busy\r\n\r\n\u{1b}[2J".to_owned());
        RampStep { offered, answered: offered, in_flight: 1.5, p50, p99, failed, verdict, first_error }
    }

    fn report(end: RampEnd, steps: Vec<RampStep>) -> RampReport {
        RampReport { steps, baseline: Duration::from_millis(30), end, requests: 1_234 }
    }

    #[test]
    fn the_table_is_sorted_by_rate_and_marks_the_knee() {
        let steps = vec![
            step(20.0, 10, 30, StepVerdict::KeptUp),
            step(1_080.0, 300, 1_000, StepVerdict::Failing),
            step(720.0, 12, 40, StepVerdict::KeptUp),
        ];
        let expected = format!(
            "   offered    answered  in flight    p50 ○    p99 ●   failed  10ms{0:30}1s\n      \
             20/s        20/s        1.5     10ms     30ms        –  ○·······●\n     \
             720/s       720/s        1.5     12ms     40ms        –   ○·········●{0:26}◀ knee\n   \
             1,080/s     1,080/s        1.5    300ms       1s   25.0 %  {0:26}○········●  fails\n\n\
             knee: 720/s, 1.5 requests in flight\nfirst error: HTTP/1.1 503 Busy\n",
            ""
        );
        assert_eq!(ramp_text(&report(RampEnd::Found, steps), Palette { colour: false }), expected);
    }

    #[test]
    fn without_a_knee_the_text_says_why() {
        let text = |end, steps| ramp_text(&report(end, steps), Palette { colour: false });
        let kept = text(RampEnd::RateMax, vec![step(20.0, 10, 10, StepVerdict::KeptUp)]);
        assert!(kept.contains("no knee up to 20/s") && kept.contains("--to allows more"), "{kept}");
        let slow = text(RampEnd::TooSlow, vec![step(1.0, 0, 0, StepVerdict::Failing)]);
        assert!(slow.contains("it kept up with no rate") && slow.contains("even one request per second"), "{slow}");
    }

    #[test]
    fn json_has_the_knee_and_all_steps() {
        let steps = vec![step(20.0, 10, 30, StepVerdict::KeptUp), step(30.0, 10, 500, StepVerdict::Slow)];
        let proposal = LimitProposal { per_second: 16, in_flight: 3, in_flight_max: 9 };
        let told = ramp_json(&report(RampEnd::Found, steps), Some(&proposal));
        assert_eq!((&told["knee"]["offered"], &told["end"]), (&json!(20.0), &json!("found")));
        assert_eq!(told["steps"][1]["verdict"], "slow");
        assert_eq!(told["proposal"]["concurrency"]["max"], 9);
    }
}
