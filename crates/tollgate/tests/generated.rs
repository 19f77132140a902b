//! Completions and manual pages are generated from the definition of the parser.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod support;

use std::fs;

use support::Dir;

#[test]
fn every_shell_has_a_script_with_the_commands() {
    let dir = Dir::new("completions");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = dir.tollgate().args(["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        for word in
            ["check", "explain", "client-key", "deny-warnings", "max-connections", "overrides", "dry-run", "expires-in"]
        {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = Dir::new("man");
    let output = dir.tollgate().args(["man", "--dir", "pages/man1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let pages = fs::read_dir(dir.path("pages/man1")).unwrap();
    let mut names: Vec<String> = pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let expected = COMMANDS.split_whitespace().map(|name| format!("tollgate-{name}.1"));
    let mut expected: Vec<String> = expected.chain(["tollgate.1".to_owned()]).collect();
    expected.sort();
    assert_eq!(names, expected);
    let page = fs::read_to_string(dir.path("pages/man1/tollgate-rules-test.1")).unwrap();
    assert!(page.contains("retry_after: 1s, rule: per\\-key"), "{page}");
    let main = dir.tollgate().arg("man").output().unwrap();
    let written = fs::read_to_string(dir.path("pages/man1/tollgate.1")).unwrap();
    assert_eq!(written, String::from_utf8(main.stdout).unwrap());
}

const COMMANDS: &str = "
    audit audit-list audit-verify
    bench check completions config explain man measure mode ready serve status tail top why
    clients clients-delete clients-get clients-import clients-list clients-set
    counters counters-reset
    db db-migrate db-status db-token envoy-compat gateway gateway-check gateway-explain
    namespaces namespaces-list
    grants grants-add grants-delete grants-list
    keys keys-create keys-list keys-revoke keys-rotate
    overrides overrides-create overrides-delete overrides-end overrides-extend overrides-get overrides-list
    penalties penalties-lift penalties-list
    plans plans-assign plans-diff plans-list plans-show
    rules rules-create rules-delete rules-diff rules-explain rules-export rules-fmt rules-generations rules-get
    rules-import rules-lint rules-list rules-mode rules-refresh rules-revert rules-rollback rules-test rules-update
    store store-check store-keys
    tokens tokens-create tokens-list tokens-revoke
    usage usage-history
    violations violations-list violations-top
    webhooks webhooks-create webhooks-delete webhooks-deliveries webhooks-list webhooks-test
";
