//! Whole sessions as text: every `$` line of `tests/transcripts/*.txt` is run, and the file must come out again as it
//! is. Lines of standard error begin with `! `, an exit code other than 0 stands in a line `? N`, and `## ` begins a
//! comment. After a change that is meant: `UPDATE_TRANSCRIPTS=1 cargo test -p tollgate --test transcripts`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod support;

use std::fs::{self, File};
use std::path::Path;

use support::Dir;

macro_rules! transcripts {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { replay(stringify!($name)); })*

        #[test]
        fn every_transcript_is_replayed() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
            let mut found: Vec<String> = fs::read_dir(folder).unwrap()
                .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect();
            found.sort();
            assert_eq!(found, [$(stringify!($name)),*]);
        }
    };
}

transcripts!(bench, check, config, db, explain, fmt, help, help_admin, lint, mistakes, store, test_tables);

fn replay(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/transcripts/{name}.txt"));
    let expected = fs::read_to_string(&path).unwrap();
    let dir = Dir::new(&format!("transcript-{name}"));
    let mut actual = String::new();
    for line in expected.lines() {
        if line.starts_with("## ") {
            actual.push_str(&format!("{line}\n"));
        }
        if let Some(command) = line.strip_prefix("$ ") {
            actual.push_str(&format!("{line}\n{}\n", run(&dir, command)));
        }
    }
    actual.truncate(actual.trim_end().len() + 1);
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
        fs::write(&path, &actual).unwrap();
    }
    assert!(
        expected == actual || std::env::var_os("UPDATE_TRANSCRIPTS").is_some(),
        "{}",
        difference(&expected, &actual)
    );
}

fn run(dir: &Dir, line: &str) -> String {
    let mut words = support::words(line);
    let mut command = dir.tollgate();
    if let Some(place) = words.iter().position(|word| word == "<") {
        let file = words.drain(place..).nth(1).unwrap();
        command.stdin(File::open(dir.path(&file)).unwrap());
    }
    while let Some((name, value)) = words[0].split_once('=') {
        command.env(name, value);
        words.remove(0);
    }
    assert_eq!(words[0], "tollgate", "{line}");
    let output = command.args(&words[1..]).output().unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap().replace('\u{1b}', "\\e");
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str("<no newline>\n");
    }
    for line in String::from_utf8(output.stderr).unwrap().lines() {
        text.push_str(format!("! {line}").trim_end());
        text.push('\n');
    }
    match output.status.code() {
        Some(0) => text,
        Some(code) => format!("{text}? {code}\n"),
        None => format!("{text}? killed\n"),
    }
}

fn difference(expected: &str, actual: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let command = old[..same.min(old.len())].iter().rfind(|line| line.starts_with("$ ")).unwrap_or(&"");
    let show = |lines: &[&str]| lines.iter().skip(same).take(15).map(|line| format!("  {line}\n")).collect::<String>();
    format!("line {}, after {command}\nexpected:\n{}actual:\n{}", same + 1, show(&old), show(&new))
}
