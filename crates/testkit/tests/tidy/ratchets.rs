//! Every number that only shrinks, in one place. A number fails its test when it is exceeded, and when it could be
//! lower: then lower it here, in the commit that made it possible.

/// Type names that are visible outside of their module and defined in more than one.
pub const DUPLICATE_TYPE_NAMES: usize = 2;

/// Pronouns that stand for components, in comments of Rust files.
pub const PRONOUNS: usize = 8;

/// Waits for real time in test code.
pub const REAL_SLEEPS: usize = 19;

/// Modules that import each other in a circle.
pub const MODULES_IN_CIRCLES: usize = 0;

/// The most lines of code in a crate: tests, comments and blank lines aside.
pub const CRATE_LINES_MAX: usize = 8_000;

/// Crates that are larger, in thousands of lines, rounded up.
pub const OVERSIZED_CRATES: &[(&str, usize)] = &[];

/// Files that are longer than `files.rs` allows, in lines.
pub const OVERSIZED_FILES: &[(&str, usize)] = &[];

/// Offences shown before the rest is only counted.
const SHOWN_MAX: usize = 200;

/// Fails when there are more offences than `allowed`, and when there are fewer. `constant` is the number's name.
#[track_caller]
pub fn hold(offences: &[String], allowed: usize, constant: &str, advice: &str) {
    if let Err(problem) = judge(offences, allowed, constant, advice) {
        panic!("\n\n{problem}\n");
    }
}

fn judge(offences: &[String], allowed: usize, constant: &str, advice: &str) -> Result<(), String> {
    let found = offences.len();
    let shown = offences.iter().take(SHOWN_MAX).map(|offence| format!("  {offence}\n")).collect::<String>();
    let more = if found > SHOWN_MAX { format!("  and {} more\n", found - SHOWN_MAX) } else { String::new() };
    match found.cmp(&allowed) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(format!(
            "{shown}{more}\n{found} found, {allowed} allowed ({constant} in crates/testkit/tests/tidy/ratchets.rs; it \
             never grows). {advice}"
        )),
        std::cmp::Ordering::Less => Err(format!(
            "{found} found, {allowed} allowed: lower {constant} in crates/testkit/tests/tidy/ratchets.rs to {found}."
        )),
    }
}

#[test]
fn a_ratchet_fails_above_and_below_its_number() {
    let offences = ["one".to_owned(), "two".to_owned()];
    assert_eq!(judge(&offences, 2, "N", "Mend it."), Ok(()));
    let above = judge(&offences, 1, "N", "Mend it.").unwrap_err();
    assert!(above.starts_with("  one\n  two\n") && above.ends_with("Mend it."), "{above}");
    let below = judge(&offences, 3, "N", "Mend it.").unwrap_err();
    assert!(below.ends_with("lower N in crates/testkit/tests/tidy/ratchets.rs to 2."), "{below}");
}
