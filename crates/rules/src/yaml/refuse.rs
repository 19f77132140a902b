//! Errors of the YAML parser as problems, with advice.

use granit_parser::{ErrorKind, Marker, ScanError};

use crate::position::SourcePosition;
use crate::problem::Problem;

pub(super) fn syntax(error: &ScanError, depth: usize) -> Problem {
    let at = position(error.marker());
    if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
        return too_deep(at, depth);
    }
    let help = match error.kind() {
        ErrorKind::MissingAnchorOrAliasName => "a value that starts with `*` or `&` needs quotes: \"*\"",
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
            "indent with spaces, two for each level"
        }
        ErrorKind::DirectiveDisallowed => "remove the line that starts with `%`",
        _ => {
            "check indentation, brackets and quotes; values with `: `, ` #`, `{` or a leading `*`, `!`, `&` need quotes"
        }
    };
    Problem::error("yaml-syntax", at, "", format!("not valid YAML: {}", error.info())).help(help)
}

pub(super) fn too_deep(at: SourcePosition, depth: usize) -> Problem {
    Problem::error("too-deep", at, "", format!("lists and maps are nested more than {depth} deep"))
        .help("no rules file needs that; check for stray brackets")
}

pub(super) fn position(mark: &Marker) -> SourcePosition {
    SourcePosition { line: number(mark.line()).max(1), column: number(mark.col()).saturating_add(1) }
}

pub(super) fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
