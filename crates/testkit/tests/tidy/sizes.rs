//! A crate that a newcomer can read: its size in lines of code, tests, comments and blank lines aside.

use std::collections::BTreeMap;

use crate::expect_none;
use crate::ratchets::{CRATE_LINES_MAX, OVERSIZED_CRATES};
use crate::sources::{Source, sources};

const THOUSAND: usize = 1_000;

#[test]
fn a_crate_can_be_read() {
    expect_none(
        offences(&lines(sources()), OVERSIZED_CRATES),
        "Move a noun of its own into a crate of its own. OVERSIZED_CRATES in ratchets.rs never grows, and loses what is \
         no longer needed.",
    );
}

/// Lines of code by crate.
fn lines(sources: &[Source]) -> BTreeMap<&str, usize> {
    let mut lines = BTreeMap::new();
    for source in sources.iter().filter(|source| source.home.starts_with("crates/")) {
        let count = source.code.lines().filter(|line| !line.trim().is_empty()).count();
        *lines.entry(source.home.trim_start_matches("crates/")).or_default() += count;
    }
    lines
}

/// Crates above their bound, and exceptions that are no longer needed or too generous.
fn offences(lines: &BTreeMap<&str, usize>, exceptions: &[(&str, usize)]) -> Vec<String> {
    let allowed = |name: &str| exceptions.iter().find(|(listed, _)| *listed == name).map(|(_, thousands)| *thousands);
    let too_large = lines.iter().filter_map(|(name, count)| {
        let most = allowed(name).map_or(CRATE_LINES_MAX, |thousands| thousands * THOUSAND);
        (*count > most).then(|| format!("crates/{name}: {count} lines of code, {most} allowed"))
    });
    let too_generous = exceptions.iter().filter_map(|(name, thousands)| {
        let count = lines.get(name).copied().unwrap_or(0);
        let needed = if count > CRATE_LINES_MAX { count.div_ceil(THOUSAND) } else { 0 };
        (needed < *thousands).then(|| match needed {
            0 => format!("crates/{name}: {count} lines of code: drop its entry of OVERSIZED_CRATES"),
            _ => format!("crates/{name}: {count} lines of code: lower its entry of OVERSIZED_CRATES to {needed}"),
        })
    });
    too_large.chain(too_generous).collect()
}

#[test]
fn sizes_leave_out_tests_comments_and_blank_lines() {
    let text = "//! doc\n\nfn a() {\n    // why\n    b();\n}\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
    let sources = crate::sources::read([("crates/a/src/lib.rs", text), ("crates/a/tests/all.rs", text)].into_iter());
    assert_eq!(lines(&sources), BTreeMap::from([("a", 3)]));
}

#[test]
fn sizes_fail_above_and_below() {
    let lines = BTreeMap::from([("small", 10), ("large", 9_500)]);
    assert_eq!(offences(&lines, &[("large", 10)]), [""; 0]);
    assert_eq!(offences(&lines, &[]), ["crates/large: 9500 lines of code, 8000 allowed"]);
    assert_eq!(offences(&lines, &[("large", 9)]), ["crates/large: 9500 lines of code, 9000 allowed"]);
    let generous = offences(&lines, &[("large", 11), ("small", 9)]);
    assert!(generous[0].ends_with("lower its entry of OVERSIZED_CRATES to 10"), "{generous:?}");
    assert!(generous[1].ends_with("drop its entry of OVERSIZED_CRATES"), "{generous:?}");
}
