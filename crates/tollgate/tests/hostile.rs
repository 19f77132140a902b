//! Hostile files, names and pipes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod support;

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Output, Stdio};

use support::Dir;

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_closed_pipe_ends_only_the_output() {
    let dir = Dir::new("closed-pipe");
    let mut command = dir.tollgate();
    command.args(["check", "--rules", "examples/first-user.yaml", "--tier", "free", "--api-key", "a"]);
    command.args(["--endpoint", "POST /api/x", "--repeat", "100000", "--at", "0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(first, "    1  +0s        allowed by free-post-api-1s: 19 of 20 left\n");
    assert_eq!(stderr(&output), "");
    assert_eq!(output.status.code(), Some(1), "the verdict stays the true one");
}

#[test]
fn a_full_disk_is_an_error() {
    let dir = Dir::new("full-disk");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = dir.tollgate().args(["rules", "lint", "examples/rules.yaml"]).stdout(full).output().unwrap();
    assert!(stderr(&output).starts_with("error: "), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_fifo_is_rejected_without_blocking() {
    let dir = Dir::new("fifo");
    assert!(Command::new("mkfifo").arg(dir.path("pipe")).status().unwrap().success());
    let output = dir.tollgate().args(["rules", "lint", "pipe"]).output().unwrap();
    assert_eq!(stderr(&output), "error: pipe is not a regular file: use - to read from a pipe\n");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_file_beyond_the_cap_is_not_read() {
    let dir = Dir::new("cap");
    fs::File::create(dir.path("huge.yaml")).unwrap().set_len(1 << 40).unwrap(); // sparse
    let output = dir.tollgate().args(["rules", "lint", "huge.yaml"]).output().unwrap();
    let expected = "error: huge.yaml is too large: 1099511627776 bytes, at most 16777216 are read\n";
    assert_eq!(stderr(&output), expected);
    let output =
        dir.tollgate().args(["rules", "lint", "-"]).stdin(fs::File::open("/dev/zero").unwrap()).output().unwrap();
    assert_eq!(stderr(&output), "error: standard input is too large: at most 16777216 bytes are read\n");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn file_names_cannot_send_escapes_to_the_terminal() {
    let dir = Dir::new("names");
    let rules = fs::read(dir.path("warned.yaml")).unwrap();
    dir.write("a\u{1b}[31m\nb.yaml", &rules);
    let output = dir.tollgate().args(["rules", "lint", "a\u{1b}[31m\nb.yaml", "c\u{1b}]0;x\u{7}"]).output().unwrap();
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(stdout.contains(r" --> a\u{1b}[31m\nb.yaml:3:39"), "{stdout}");
    assert_eq!(stderr(&output), "error: cannot read c\\u{1b}]0;x\\u{7}: there is no such file\n");
    let odd = OsStr::from_bytes(b"\xff\xfe.yaml");
    fs::write(dir.path("examples").join(odd), &rules).unwrap();
    let output = dir.tollgate().arg("rules").arg("lint").arg(dir.path("examples").join(odd)).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn text_of_rules_cannot_send_escapes_to_the_terminal() {
    let dir = Dir::new("text");
    dir.write("rules.yaml", "rules:\n  - description: \"a\\e[31mb\"\n    limit: { requests: 1, window: 1s }\n");
    let output = dir.tollgate().args(["rules", "explain", "--rules", "rules.yaml"]).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains(r"about     a\u{1b}[31mb"), "{stdout}");
    let args = ["rules", "explain", "--rules", "rules.yaml", "--client-key", "x\u{1b}[2J"];
    let output = dir.tollgate().args(args).output().unwrap();
    assert!(!output.stdout.contains(&0x1b), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn formatting_keeps_links_and_permissions() {
    let dir = Dir::new("replace");
    let untidy = dir.path("untidy.yaml");
    fs::set_permissions(&untidy, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("untidy.yaml", dir.path("link.yaml")).unwrap();
    let output = dir.tollgate().args(["rules", "fmt", "--write", "link.yaml"]).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert!(fs::symlink_metadata(dir.path("link.yaml")).unwrap().is_symlink());
    assert_eq!(fs::metadata(&untidy).unwrap().permissions().mode() & 0o7777, 0o640);
    let formatted = fs::read_to_string(&untidy).unwrap();
    let again = dir.tollgate().args(["rules", "fmt", "untidy.yaml"]).output().unwrap();
    assert_eq!(String::from_utf8(again.stdout).unwrap(), formatted, "formatting twice is formatting once");
    let left = fs::read_dir(dir.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains(".tollgate-")), "a temporary file is left");
}

#[test]
fn a_file_with_errors_is_not_rewritten() {
    let dir = Dir::new("errors");
    let before = fs::read(dir.path("bad.yaml")).unwrap();
    let output = dir.tollgate().args(["rules", "fmt", "--write", "bad.yaml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read(dir.path("bad.yaml")).unwrap(), before);
}

#[test]
fn an_unwritable_file_is_reported_and_the_others_are_formatted() {
    let dir = Dir::new("read-only");
    fs::create_dir(dir.path("locked")).unwrap();
    fs::copy(dir.path("untidy.yaml"), dir.path("locked/untidy.yaml")).unwrap();
    fs::set_permissions(dir.path("locked"), fs::Permissions::from_mode(0o555)).unwrap();
    let output =
        dir.tollgate().args(["rules", "fmt", "--write", "locked/untidy.yaml", "untidy.yaml"]).output().unwrap();
    let is_root = fs::write(dir.path("locked/probe"), "").is_ok(); // root writes anywhere
    fs::set_permissions(dir.path("locked"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(String::from_utf8(output.stdout.clone()).unwrap().ends_with("untidy.yaml: formatted\n"));
    if !is_root {
        assert!(stderr(&output).starts_with("error: cannot write locked/untidy.yaml: "), "{}", stderr(&output));
        assert_eq!(output.status.code(), Some(2));
    }
}
