//! `tollgate rules test FILE...`

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::input::{self, SourceText};
use crate::output::Output;
use crate::suite::{self, StepFailure, TableResult};
use tollgate_terminal::{Palette, count, visible};

/// The tables.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Test tables; - reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = r#"A test table lists requests, their times, and the expected decisions. It runs on a
simulated clock: waiting takes no time, and every run has the same result. Keep the
table beside the rules, and run it in CI.

  rules: rules.yaml              # relative to the table; or the rules themselves
  start: 2026-01-01T00:00:00Z    # the default
  defaults: { api_key: abc, endpoint: "GET /api/x" }
  steps:
    - { times: 5, expect: allow }                        # five at once
    - { expect: deny, retry_after: 1s, rule: per-key }   # the sixth is denied
    - { at: 30s, user_id: bob, cost: 2, expect: allow, remaining: 3 }
    - { after: 1m, times: 10, every: 100ms, allowed: 7 } # seven of ten
    - { slot: upload, expect: allow }                    # acquires a slot
    - { after: 5s, renew: upload }                       # renews it
    - { after: 5s, release: upload }                     # releases it

When
  at: 30s       since the start; or a time such as 2026-01-01T12:00:00Z
  after: 5s     since the end of the previous step; by default at once
  times: 10     number of requests
  every: 100ms  interval between them
Request
  client_key, api_key, user_id, ip, org, tier, endpoint, namespace
  attributes: { name: value }
  cost: 2, peek: true (do not charge), in_flight: true (acquire a slot)
  slot: NAME    hold a slot until { release: NAME }; { renew: NAME } renews it
                ({ renew: NAME, expect: deny } if it should have expired)
  A blank value (tier: ~) removes a default.
Expectation: one of
  expect: allow | deny | invalid    for every request of the step
  allowed: 7                        number of allowed requests
Optional expectations for the last request of the step
  rule: NAME                the deciding rule, or none
  applies: [NAMES]          all applicable rules
  limit, remaining: 3       of the deciding rule; remaining: { NAME: 3 } of any rule
  retry_after: 1s | never
  reset_after: 5s, delay: 2s

Examples:
  tollgate rules test rules.test.yaml
  tollgate rules test examples/*.test.yaml
  tollgate rules test --json rules.test.yaml | jq .failed

Exit codes:
  0  all steps passed
  1  some steps failed
  2  wrong usage, unreadable tables or rules"#;

/// Runs the tables; an unreadable one does not affect the others.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut exit = Exit::Ok;
    let mut total = Total::default();
    for path in &args.files {
        match run_file(path) {
            Ok((source, result)) => {
                exit = exit.max(Exit::from_success(result.failures.is_empty()));
                if !args.json {
                    out.text(&file_text(&source, &result, out.palette()))?;
                }
                total.add(&source, &result);
            }
            Err(error) => {
                out.error(&error);
                total.unreadable += 1;
                exit = Exit::Unusable;
            }
        }
    }
    match args.json {
        true => out.json(&total.json())?,
        false => out.text(&total.text(out.palette()))?,
    }
    Ok(exit)
}

fn run_file(path: &Path) -> Result<(SourceText, TableResult)> {
    let source = input::read(path)?;
    let table = suite::read(path, &source)?;
    Ok((source, suite::run(table)))
}

#[derive(Default)]
struct Total {
    steps: usize,
    requests: u64,
    failed: usize,
    unreadable: usize,
    files: Vec<Value>,
}

impl Total {
    fn add(&mut self, source: &SourceText, result: &TableResult) {
        self.steps += result.steps;
        self.requests += result.requests;
        self.failed += result.failures.len();
        self.files.push(json!({
            "file": source.name,
            "steps": result.steps,
            "requests": result.requests,
            "failed": result.failures.len(),
            "failures": result.failures.iter().map(failure_json).collect::<Vec<_>>(),
        }));
    }

    fn text(&self, palette: Palette) -> String {
        let failed = format!("{} failed", self.failed);
        let failed = if self.failed == 0 { palette.good(&failed) } else { palette.bad(&failed) };
        let unreadable = match self.unreadable {
            0 => String::new(),
            number => format!(", {}", palette.bad(&format!("{} unreadable", count(number, "table")))),
        };
        format!("\n{}, {failed}{unreadable}\n", count(self.steps, "step"))
    }

    fn json(&self) -> Value {
        json!({
            "steps": self.steps,
            "requests": self.requests,
            "failed": self.failed,
            "unreadable": self.unreadable,
            "files": self.files,
        })
    }
}

fn file_text(source: &SourceText, result: &TableResult, palette: Palette) -> String {
    let steps = count(result.steps, "step");
    let name = visible(&source.name);
    if result.failures.is_empty() {
        return format!("{}      {name} ({steps})\n", palette.good("ok"));
    }
    let failed = format!("{} of {steps} failed", result.failures.len());
    let mut text = format!("{}  {name} ({failed})\n", palette.bad("FAILED"));
    for failure in &result.failures {
        text.push('\n');
        text.push_str(&failure_text(source, failure, palette));
    }
    text + "\n"
}

/// A failed step: its text in the table, and the differences.
fn failure_text(source: &SourceText, failure: &StepFailure, palette: Palette) -> String {
    let step = step_lines(source, failure);
    let width = step.last().map_or(1, |(number, _)| number.to_string().len());
    let gutter = " ".repeat(width);
    let name = failure.name.as_ref().map(|name| format!(": {name}")).unwrap_or_default();
    let place = format!("{}:{}:{} at {}{name}", source.name, failure.at.line, failure.at.column, failure.offset);
    let mut text = format!("{gutter}{}\n", palette.hint(&format!("--> {place}")));
    text.push_str(&format!("{gutter} |\n"));
    for (number, line) in step {
        text.push_str(&format!("{number:<width$} | {}\n", visible(line.trim_end())));
    }
    text.push_str(&format!("{gutter} |\n"));
    for mismatch in &failure.mismatches {
        text.push_str(&format!("{gutter} = expected: {}\n", palette.strong(&mismatch.expected)));
        text.push_str(&format!("{gutter} =      got: {}\n", palette.bad(&mismatch.got)));
    }
    if let Some(decision) = &failure.decision {
        text.push_str(&format!("{gutter} = decision: {}\n", visible(decision)));
    }
    for ruling in &failure.rulings {
        text.push_str(&format!("{gutter} =     rule: {}\n", visible(ruling)));
    }
    text
}

/// The lines of the step with their numbers.
fn step_lines<'a>(source: &'a SourceText, failure: &StepFailure) -> Vec<(usize, &'a str)> {
    const SHOWN: usize = 12;
    let first = (failure.at.line as usize).max(1);
    let last = failure.end_line as usize;
    let lines = (1..).zip(source.text.lines()).skip(first - 1).take((last + 1).saturating_sub(first).clamp(1, SHOWN));
    let mut lines: Vec<(usize, &str)> = lines.collect();
    while lines.len() > 1 && lines.last().is_some_and(|(_, line)| is_beside(line)) {
        lines.pop();
    }
    lines
}

/// True for a blank line or a comment.
fn is_beside(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

fn failure_json(failure: &StepFailure) -> Value {
    let mismatches = failure.mismatches.iter();
    json!({
        "line": failure.at.line,
        "column": failure.at.column,
        "name": failure.name,
        "at": failure.offset,
        "mismatches": mismatches.map(|m| json!({ "expected": m.expected, "got": m.got })).collect::<Vec<_>>(),
        "decision": failure.decision,
        "rules": failure.rulings,
    })
}
