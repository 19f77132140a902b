//! All problems of one text, printed as compilers do: message, position, line with a caret, help.

use std::fmt;

use crate::problem::{Problem, Problems, Severity};

/// The problems of one file, sorted by position, with the lines that they refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Name of the file as the caller gave it.
    pub file: String,
    /// The first [`Report::SHOWN`] problems in the order of the text.
    pub problems: Vec<Problem>,
    /// How many more there were.
    pub more: usize,
    lines: Vec<String>,
}

impl Report {
    /// How many problems are shown; the rest is counted.
    pub const SHOWN: usize = 50;

    /// Sorts and caps the problems, and keeps the lines of `text` that they refer to.
    pub fn new(file: &str, text: &str, problems: Problems) -> Self {
        let (mut problems, dropped) = problems.into_parts();
        problems.sort_by(|a, b| position(a).cmp(&position(b)).then_with(|| a.field.cmp(&b.field)));
        let more = dropped + problems.len().saturating_sub(Self::SHOWN);
        problems.truncate(Self::SHOWN);
        let lines = quoted_lines(text, &problems);
        Self { file: file.to_owned(), problems, more, lines }
    }

    /// Whether any problem is an error.
    pub fn is_fatal(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    fn block(&self, f: &mut fmt::Formatter<'_>, problem: &Problem, line: &str) -> fmt::Result {
        writeln!(f, "{}[{}]: {}", problem.severity.word(), problem.code, visible(&problem.message))?;
        let number = problem.line.to_string();
        let gutter = " ".repeat(number.len());
        if problem.line == 0 {
            writeln!(f, " --> {}", visible(&self.file))?;
        } else {
            let (shown, caret) = cut(line, problem.column);
            writeln!(f, "{gutter}--> {}:{}:{}", visible(&self.file), problem.line, problem.column)?;
            writeln!(f, "{gutter} |")?;
            writeln!(f, "{}", format!("{number} | {shown}").trim_end())?;
            writeln!(f, "{gutter} | {}^", " ".repeat(caret))?;
        }
        match &problem.help {
            Some(help) => writeln!(f, "{gutter} = help: {}", visible(help)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (problem, line) in self.problems.iter().zip(&self.lines) {
            self.block(f, problem, line)?;
            writeln!(f)?;
        }
        let count = self.problems.len() + self.more;
        let plural = if count == 1 { "" } else { "s" };
        if self.more > 0 {
            writeln!(f, "... and {} more", self.more)?;
        }
        writeln!(f, "{count} problem{plural} in {}", visible(&self.file))
    }
}

impl std::error::Error for Report {}

fn position(problem: &Problem) -> (u32, u32) {
    (problem.line, problem.column)
}

/// The line of each problem, in one pass over the text; the problems are sorted.
fn quoted_lines(text: &str, problems: &[Problem]) -> Vec<String> {
    let mut lines = lines(text);
    let (mut number, mut line) = (0, "");
    problems
        .iter()
        .map(|problem| {
            while number < problem.line {
                number += 1;
                line = lines.next().unwrap_or("");
            }
            around(line, problem.column)
        })
        .collect()
}

/// Lines as YAML counts them: `\n`, `\r\n` and a lone `\r` all end one.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let here = rest?;
        let Some((line, after)) = here.split_once(['\n', '\r']) else {
            return rest.take();
        };
        let crlf = here.as_bytes().get(line.len()) == Some(&b'\r') && after.starts_with('\n');
        rest = Some(if crlf { after.get(1..).unwrap_or("") } else { after });
        Some(line)
    })
}

/// Widest part of a line that is printed.
const WIDTH: usize = 100;

/// The part of a line that is kept for printing: enough on both sides of the column, however long the line is.
fn around(line: &str, column: u32) -> String {
    let skip = skipped(column);
    let mut kept: String = line.chars().skip(skip).take(WIDTH + 1).collect();
    if skip > 0 {
        kept.insert(0, '\u{2026}');
    }
    kept
}

fn skipped(column: u32) -> usize {
    let index = (column as usize).saturating_sub(1);
    if index < WIDTH * 3 / 4 { 0 } else { index - WIDTH / 2 }
}

/// The printable form of a kept line, and the number of columns before the caret.
fn cut(line: &str, column: u32) -> (String, usize) {
    let skip = skipped(column);
    let index = (column as usize).saturating_sub(1) - skip + usize::from(skip > 0);
    let limit = WIDTH + usize::from(skip > 0);
    let mut shown = String::new();
    let mut caret = None;
    for (at, letter) in line.chars().enumerate() {
        if at == index {
            caret = Some(shown.chars().count());
        }
        if at == limit {
            shown.push('\u{2026}');
            break;
        }
        push_visible(&mut shown, letter);
    }
    let caret = caret.unwrap_or_else(|| shown.chars().count());
    (shown, caret)
}

/// Text safe for a terminal: control and direction-changing characters are written as escapes.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|letter| push_visible(&mut shown, letter));
    shown
}

fn push_visible(shown: &mut String, letter: char) {
    let hidden = letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    match letter {
        '\t' => shown.push_str("    "),
        _ if hidden => shown.extend(letter.escape_default()),
        _ => shown.push(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::SourcePosition;

    fn report(text: &str, places: &[(u32, u32)]) -> Report {
        let mut problems = Problems::default();
        for &(line, column) in places {
            problems.push(Problem::error("some-code", SourcePosition { line, column }, "a.b", "wrong"));
        }
        Report::new("rules.yaml", text, problems)
    }

    #[test]
    fn points_at_the_column() {
        let shown = report("one\ntwo three\n", &[(2, 5)]).to_string();
        assert_eq!(
            shown,
            "error[some-code]: wrong\n --> rules.yaml:2:5\n  |\n2 | two three\n  |     ^\n\n1 problem in rules.yaml\n"
        );
    }

    #[test]
    fn escapes_control_characters_and_keeps_the_caret_right() {
        let shown = report("a\u{1b}[31mb: c\r\n", &[(1, 9)]).to_string();
        assert!(shown.contains("1 | a\\u{1b}[31mb: c\n  |              ^\n"), "{shown}");
    }

    #[test]
    fn cuts_long_lines_around_the_column() {
        let line = format!("{}X{}", "a".repeat(5000), "b".repeat(5000));
        let shown = report(&line, &[(1, 5001)]).to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[3].chars().count() < 120, "{shown}");
        let caret = lines[4].chars().position(|letter| letter == '^').unwrap();
        assert_eq!(lines[3].chars().nth(caret), Some('X'), "{shown}");
    }

    #[test]
    fn shows_fifty_in_order_and_counts_the_rest() {
        let places: Vec<(u32, u32)> = (1..=2000).rev().map(|line| (line, 1)).collect();
        let report = report("", &places);
        assert_eq!((report.problems.len(), report.more), (50, 1950));
        assert!(report.to_string().ends_with("... and 1950 more\n2000 problems in rules.yaml\n"));
    }

    #[test]
    fn counts_lines_like_yaml() {
        assert_eq!(lines("a\r\nb\rc\nd").collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        assert_eq!(lines("").collect::<Vec<_>>(), [""]);
    }
}
