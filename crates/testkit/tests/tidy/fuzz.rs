//! A fuzz target is more than its file: it is built, it has a corpus, and the corpus replays as an ordinary test.

use crate::expect_none;
use crate::tree;

const ADVICE: &str = "The head of fuzz/Cargo.toml lists what a target consists of.";

#[test]
fn fuzz_targets_are_complete() {
    let manifest = tree::text_of("fuzz/Cargo.toml").expect("fuzz/Cargo.toml is there");
    let replay = tree::text_of("crates/testkit/tests/corpus.rs").unwrap_or_default();
    let mut offences = Vec::new();
    for target in targets() {
        if !manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")) {
            offences.push(format!("{target}: no [[bin]] in fuzz/Cargo.toml"));
        }
        if !corpora().any(|corpus| corpus == target) {
            offences.push(format!("{target}: no inputs in fuzz/corpus/{target}/"));
        }
        if !replay.split(|letter: char| !is_of_a_name(letter)).any(|word| word == target) {
            offences.push(format!("{target}: not replayed by crates/testkit/tests/corpus.rs"));
        }
    }
    expect_none(offences, ADVICE);
}

#[test]
fn every_corpus_has_its_target() {
    let mut orphans: Vec<String> =
        corpora().filter(|corpus| targets().all(|target| target != *corpus)).map(str::to_owned).collect();
    orphans.dedup();
    expect_none(orphans, "Remove the folder of fuzz/corpus/, or name it after its target.");
}

fn targets() -> impl Iterator<Item = &'static str> {
    let files = tree::paths().iter().filter_map(|path| path.strip_prefix("fuzz/fuzz_targets/"));
    files.filter_map(|file| file.strip_suffix(".rs")).filter(|target| !target.contains('/'))
}

/// The folder of each committed input.
fn corpora() -> impl Iterator<Item = &'static str> {
    let inputs = tree::paths().iter().filter_map(|path| path.strip_prefix("fuzz/corpus/"));
    inputs.filter_map(|input| input.split_once('/')).map(|(corpus, _)| corpus)
}

fn is_of_a_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}
