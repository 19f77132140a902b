//! Whole reports of typical mistakes.
//!
//! After an intended change, build with `TOLLGATE_WRITE_REPORTS=path/to/reports.txt` to rewrite them, and read the
//! diff.

use super::*;

/// Inputs and their reports, separated by lines of `=` and `-`.
const CASES: &str = include_str!("reports.txt");

#[test]
fn reports_read_as_written() {
    let mut actual = String::new();
    for case in CASES.split("=====\n").skip(1) {
        let (text, _) = case.split_once("-----\n").unwrap();
        let report = read("rules.yaml", text).expect_err(text);
        actual.push_str(&format!("=====\n{text}-----\n{report}"));
    }
    if let Some(path) = option_env!("TOLLGATE_WRITE_REPORTS") {
        std::fs::write(path, &actual).unwrap();
    }
    assert!(CASES.matches("=====\n").count() >= 15);
    assert!(actual == CASES, "{actual}");
}
