//! White space that shows up in diffs and nowhere else.

use crate::expect_none;
use crate::tree::{self, TextFile};

const ADVICE: &str =
    "Let your editor read .editorconfig. Raw inputs of tests live in fuzz/corpus/ or a fixtures/ folder.";

/// Where a tab is never meant.
const INDENTED_BY_SPACES: &[&str] = &[".rs", ".md", ".yaml", ".yml", ".toml"];

#[test]
fn no_line_ends_in_blanks() {
    expect_none(lines(|_, line| line.ends_with([' ', '\t'])), ADVICE);
}

#[test]
fn no_line_ends_in_a_carriage_return() {
    expect_none(lines(|_, line| line.ends_with('\r')), ADVICE);
}

#[test]
fn no_tabs_where_spaces_indent() {
    // Caddy's own formatter writes tabs, and pages show its files as they are.
    let spaced = |file: &TextFile| {
        INDENTED_BY_SPACES.iter().any(|ending| file.path.ends_with(ending)) && !file.path.ends_with("/caddy.md")
    };
    expect_none(lines(|file, line| spaced(file) && line.contains('\t')), ADVICE);
}

#[test]
fn a_file_ends_with_one_newline() {
    let offences = tree::texts()
        .filter(|file| !file.text.is_empty() && (!file.text.ends_with('\n') || file.text.ends_with("\n\n")));
    expect_none(offences.map(|file| file.path.clone()).collect(), ADVICE);
}

fn lines(is_offence: impl Fn(&TextFile, &str) -> bool) -> Vec<String> {
    let mut offences = Vec::new();
    for file in tree::texts() {
        for (number, line) in file.text.split('\n').enumerate() {
            if is_offence(file, line) {
                offences.push(format!("{}:{}", file.path, number + 1));
            }
        }
    }
    offences
}
