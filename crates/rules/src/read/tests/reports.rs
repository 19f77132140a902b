//! Whole reports of typical mistakes, as people see them.
//!
//! After a wanted change, build with `TOLLGATE_WRITE_REPORTS=path/to/reports.txt` to write them anew, and read the diff.

use super::*;

/// Inputs and their reports, one after the other, separated by lines of `=` and `-`.
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
