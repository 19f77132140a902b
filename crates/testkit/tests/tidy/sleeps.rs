//! Tests do not wait for real time: they advance a clock, or wait for an event.

use crate::ratchets::{self, REAL_SLEEPS};
use crate::sources::{Source, sources};

#[test]
fn tests_do_not_sleep() {
    ratchets::hold(
        &sleeps(sources()),
        REAL_SLEEPS,
        "REAL_SLEEPS",
        "Advance a ManualClock, pause Tokio's clock (`start_paused = true`), or wait for the event itself.",
    );
}

/// Crates that are never shipped: their code is test code.
const TEST_CRATES: &[&str] = &["crates/lab", "crates/testkit"];

/// Where real time is the subject: rows of faults are schedules, played on real processes with clocks of their own.
/// `patience.rs` is the home of the waits themselves.
const IN_REAL_TIME: &[&str] = &["crates/lab/src/faults/", "crates/lab/src/durability.rs", "crates/lab/src/patience.rs"];

/// Waits on a clock that a test may pause, and waits that no test can pause.
const PAUSABLE: &[&str] = &["sleep", "sleep_until", "interval", "interval_at"];
const REAL: &[&str] = &["pause", "park_timeout"];

/// Every wait in test code that takes real time, by file and function.
fn sleeps(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| !IN_REAL_TIME.iter().any(|place| source.path.starts_with(place))) {
        let code = match TEST_CRATES.contains(&source.home.as_str()) {
            true => format!("{}{}", source.code, source.tests),
            false => source.tests.clone(),
        };
        let code = &code;
        // A file with a `pause` of its own means that one: what it does inside is looked at.
        let is_own = source.code.contains("fn pause(") || source.tests.contains("fn pause(");
        let real = if is_own { REAL.split_at(1).1 } else { REAL };
        let (mut is_paused, mut after_attribute, mut function) = (false, false, "");
        for line in code.lines().map(str::trim) {
            if line.starts_with("#[tokio::test") || line.starts_with("#[test") {
                (is_paused, after_attribute) = (line.contains("start_paused = true"), true);
            } else if let Some(name) = function_name(line) {
                if !std::mem::take(&mut after_attribute) {
                    is_paused = is_paused_throughout(code);
                }
                function = name;
            } else {
                let waits = real_waits(line, real) + if is_paused { 0 } else { real_waits(line, PAUSABLE) };
                found.extend((0..waits).map(|_| format!("{}: {function}", source.path)));
            }
        }
    }
    found
}

/// What a line declares, if it is a function.
fn function_name(line: &str) -> Option<&str> {
    let words = line.split(' ').skip_while(|word| word.starts_with("pub") || ["async", "const"].contains(word));
    let mut words = words.skip_while(|word| word.ends_with(')'));
    let name = (words.next()? == "fn").then(|| words.next())??;
    name.split(['(', '<']).next()
}

/// Whether every asynchronous test of a file runs on a paused clock: then its helper functions do.
fn is_paused_throughout(code: &str) -> bool {
    let mut tests = code.lines().filter(|line| line.trim().starts_with("#[tokio::test")).peekable();
    tests.peek().is_some() && tests.all(|line| line.contains("start_paused = true"))
}

/// Calls of these functions with an argument: `tokio::time::pause()` has none, `patience::pause(span)` has. Of methods
/// only the `pause` of a lab waits.
fn real_waits(line: &str, names: &[&str]) -> usize {
    let calls = names.iter().flat_map(|name| line.match_indices(*name).map(move |(at, _)| (at, at + name.len())));
    let is_call = |(start, end): &(usize, usize)| {
        let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        let is_method = line[..*start].ends_with('.') && !line[..*end].ends_with("lab.pause");
        !line[..*start].ends_with(is_name)
            && !is_method
            && line[*end..].starts_with('(')
            && !line[*end..].starts_with("()")
    };
    calls.filter(is_call).count()
}

#[test]
fn finds_real_waits_only() {
    let text = "#[tokio::test]\nasync fn waits() {\n    sleep(ms(1)).await;\n    tokio::time::sleep_until(then).await;\n}\n\
                #[tokio::test(start_paused = true)]\nasync fn advances() {\n    sleep(ms(1)).await;\n    pause(ms(1));\n}\n\
                #[test]\nfn blocks() {\n    thread::sleep(ms(1)); // sleep(ms(1))\n    tokio::time::pause();\n    lab.pause(1);\n    \
                oversleep(1);\n    limit.interval(1);\n    hint.pause(1);\n    thread::park_timeout(ms(1));\n}\npub(crate) async fn helps() {\n    sleep(ms(1)).await;\n}\n";
    let found = sleeps(&crate::sources::read([("crates/a/tests/all.rs", text)].into_iter()));
    let names: Vec<&str> = found.iter().filter_map(|line| Some(line.split_once(": ")?.1)).collect();
    assert_eq!(names, ["waits", "waits", "advances", "blocks", "blocks", "blocks", "helps"]);
    let count = |path| sleeps(&crate::sources::read([(path, text)].into_iter())).len();
    assert_eq!(count("crates/a/src/lib.rs"), 0, "no test");
    assert_eq!(count("crates/lab/src/proxy.rs"), 7, "a crate for tests");
    assert_eq!(count("crates/lab/src/faults/rows/clocks.rs"), 0, "played in real time");
    let own = "fn pause(turn: u64) -> Span {\n    Span::from_secs(turn)\n}\n#[test]\nfn grows() {\n    pause(1);\n    thread::sleep(ms(1));\n}\n";
    assert_eq!(
        sleeps(&crate::sources::read([("crates/a/tests/all.rs", own)].into_iter())).len(),
        1,
        "not its own pause"
    );
}

#[test]
fn helpers_are_paused_where_all_tests_are() {
    let text =
        "#[tokio::test(start_paused = true)]\nasync fn advances() {}\nasync fn helps() {\n    sleep(1).await;\n}\n";
    assert!(sleeps(&crate::sources::read([("crates/a/tests/all.rs", text)].into_iter())).is_empty());
}
