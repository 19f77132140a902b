//! House rules that neither the compiler nor clippy can see, one test each. A failure lists what breaks the rule and
//! says what to do about it. Rules with exceptions are ratchets: they may shrink, never grow; `ratchets.rs` has all their
//! numbers.
//!
//! Everything is read from the files of the repository, so a rule costs nothing at run time and needs no tool beyond
//! Cargo. The dependency rules come from `deny.toml`, which cargo-deny reads too: one list, two readers.

mod arrows;
mod cycles;
mod deny;
mod dependencies;
mod files;
mod fuzz;
mod lexer;
mod links;
mod metadata;
mod names;
mod paths;
mod programs;
mod pronouns;
mod protos;
mod ratchets;
mod sizes;
mod sleeps;
mod sources;
mod spdx;
mod tree;
mod walks;
mod whitespace;
mod words;

/// Fails with every offence at once, and with the advice.
#[track_caller]
fn expect_none(offences: Vec<String>, advice: &str) {
    assert!(offences.is_empty(), "\n\n  {}\n\n{advice}\n", offences.join("\n  "));
}
