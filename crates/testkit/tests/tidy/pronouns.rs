//! Comments name the component: a pronoun hides which one is meant.

use crate::ratchets::{self, PRONOUNS};
use crate::sources::{Source, sources};

const WORDS: &[&str] = &["whoever", "somebody", "nobody", "everybody", "anybody"];

#[test]
fn comments_name_components() {
    ratchets::hold(
        &pronouns(sources()),
        PRONOUNS,
        "PRONOUNS",
        "Say which component: the caller, the node, the store, the connection.",
    );
}

/// Every pronoun, with its place.
fn pronouns(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        for (number, line) in source.comments.lines().enumerate() {
            let words = line.split(|letter: char| !letter.is_alphanumeric()).map(str::to_lowercase);
            let pronouns = words.filter(|word| WORDS.contains(&word.as_str()));
            found.extend(pronouns.map(|word| format!("{}:{}: {word}", source.path, number + 1)));
        }
    }
    found
}

#[test]
fn finds_pronouns_in_comments_only() {
    let text = "//! Nobody's, and whoever's.\nlet nobody = \"somebody\"; // /* everybody */ nobodys\n";
    let found = pronouns(&crate::sources::read([("crates/a/src/lib.rs", text)].into_iter()));
    assert_eq!(
        found,
        ["crates/a/src/lib.rs:1: nobody", "crates/a/src/lib.rs:1: whoever", "crates/a/src/lib.rs:2: everybody"]
    );
}
