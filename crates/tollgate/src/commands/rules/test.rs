//! `tollgate rules test FILE...`

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::input::{self, SourceText};
use crate::output::Output;
use crate::render::{Palette, count, visible};
use crate::suite::{self, StepFailure, TableResult};

/// Which tables.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Tables; - reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = r#"A table says which requests come when, and what should become of them. It runs
on a clock of its own: an hour of waiting takes no time, and the result is the
same in every run. Keep it beside the rules, and run it in CI.

  rules: rules.yaml              # beside the table; or the rules themselves
  start: 2026-01-01T00:00:00Z    # this is the default
  defaults: { api_key: abc, endpoint: "GET /api/x" }
  steps:
    - { times: 5, expect: allow }                        # five at once
    - { expect: deny, retry_after: 1s, rule: per-key }   # and no sixth
    - { at: 30s, user_id: bob, cost: 2, expect: allow, remaining: 3 }
    - { after: 1m, times: 10, every: 100ms, allowed: 7 } # seven of ten
    - { slot: upload, expect: allow }                    # in flight ...
    - { after: 5s, renew: upload }                       # ... still ...
    - { after: 5s, release: upload }                     # ... no more

When
  at: 30s       since the start; or a date such as 2026-01-01T12:00:00Z
  after: 5s     since the end of the step before; without both: at once
  times: 10     so many requests, one after the other ...
  every: 100ms  ... and so far apart
Who and what
  client_key, api_key, user_id, ip, org, tier, endpoint, namespace
  attributes: { name: value }
  cost: 2, peek: true (only ask), in_flight: true (hold a slot)
  slot: NAME    hold it until { release: NAME }; { renew: NAME } keeps it alive
                ({ renew: NAME, expect: deny } if it should be lost by then)
  A blank value (tier: ~) takes a default away.
Expected: one of
  expect: allow | deny | invalid    of every request of the step
  allowed: 7                        so many of them pass
Checked if written, on the last request of the step
  rule: NAME                the rule that decides; none if no rule does
  applies: [NAMES]          all rules that apply
  limit, remaining: 3       of that rule; remaining: { NAME: 3 } of any other
  retry_after: 1s | never
  reset_after: 5s, delay: 2s

Examples:
  tollgate rules test rules.test.yaml
  tollgate rules test examples/*.test.yaml
  tollgate rules test --json rules.test.yaml | jq .failed

Exit codes:
  0  all steps went as expected
  1  some did not
  2  wrong usage, or a table or its rules cannot be read"#;

/// Runs the tables one after the other; one that cannot be read does not keep the others from it.
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

/// The step as it stands in the table, and what came instead.
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

/// The lines of the step with their numbers, without what follows it.
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

/// True for a line that is blank or a comment.
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
