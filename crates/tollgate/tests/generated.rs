//! Completions and manual pages come from the same definition as the parser.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod support;

use std::fs;

use support::Dir;

#[test]
fn every_shell_has_a_script_that_knows_the_commands() {
    let dir = Dir::new("completions");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = dir.tollgate().args(["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        for word in ["check", "explain", "client-key", "deny-warnings", "max-connections"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
}

#[test]
fn every_command_has_a_page() {
    let dir = Dir::new("man");
    let output = dir.tollgate().args(["man", "--dir", "pages/man1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let pages = fs::read_dir(dir.path("pages/man1")).unwrap();
    let mut names: Vec<String> = pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let expected = [
        "tollgate-bench.1",
        "tollgate-check.1",
        "tollgate-completions.1",
        "tollgate-config.1",
        "tollgate-explain.1",
        "tollgate-man.1",
        "tollgate-rules-explain.1",
        "tollgate-rules-fmt.1",
        "tollgate-rules-lint.1",
        "tollgate-rules-test.1",
        "tollgate-rules.1",
        "tollgate-serve.1",
        "tollgate-store-check.1",
        "tollgate-store.1",
        "tollgate.1",
    ];
    assert_eq!(names, expected);
    let page = fs::read_to_string(dir.path("pages/man1/tollgate-rules-test.1")).unwrap();
    assert!(page.contains("retry_after: 1s, rule: per\\-key"), "{page}");
    let main = dir.tollgate().arg("man").output().unwrap();
    let written = fs::read_to_string(dir.path("pages/man1/tollgate.1")).unwrap();
    assert_eq!(written, String::from_utf8(main.stdout).unwrap());
}
