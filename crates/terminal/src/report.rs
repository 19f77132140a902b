//! Problems of files: a [`Report`] as coloured text, or as JSON.

use serde_json::{Value, json};
use tollgate_rules::{Problem, Report};

use super::Palette;

/// The text of the report, coloured.
pub fn colour_report(report: &Report, palette: Palette) -> String {
    let text = report.to_string();
    if !palette.colour {
        return text;
    }
    text.lines().map(|line| colour_line(line, palette) + "\n").collect()
}

/// Colours a line by its beginning; text from the file always follows a `|`.
fn colour_line(line: &str, palette: Palette) -> String {
    let inner = line.trim_start();
    if let Some((word, rest)) = line.split_once('[').filter(|(word, _)| *word == "error" || *word == "warning") {
        let paint = |text: &str| if word == "error" { palette.bad(text) } else { palette.warn(text) };
        let (code, message) = rest.split_once(']').unwrap_or((rest, ""));
        return format!("{}{}", paint(&format!("{word}[{code}]")), palette.strong(message));
    }
    if inner.starts_with("--> ") || inner.starts_with("= help:") {
        return palette.hint(line);
    }
    if inner.starts_with('|') {
        return palette.bad(line);
    }
    line.to_owned()
}

/// A problem as JSON; an absent location or help is null.
pub fn problem_json(file: &str, problem: &Problem) -> Value {
    let place = |number: u32| (number > 0).then_some(number);
    json!({
        "file": file,
        "line": place(problem.line),
        "column": place(problem.column),
        "severity": problem.severity.word(),
        "code": problem.code,
        "field": problem.field,
        "message": problem.message,
        "help": problem.help,
    })
}
