//! Transcripts: every `$` line is run, and its output compared. Lines of standard error begin with `! `, a line `? N`
//! is an exit code other than 0, and `## ` begins a comment.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use super::{Dir, words};

/// Runs the commands of a transcript.
#[allow(dead_code, reason = "not every test binary replays")]
pub trait Transcript {
    /// The working directory.
    fn dir(&self) -> &Dir;

    /// The binary and its environment.
    fn command(&self) -> Command {
        self.dir().tollgate()
    }

    /// Replaces placeholders in a word.
    fn word(&self, word: &str) -> String {
        word.to_owned()
    }

    /// Replaces values by placeholders in the output.
    fn text(&mut self, text: &str) -> String {
        text.to_owned()
    }
}

impl Transcript for Dir {
    fn dir(&self) -> &Dir {
        self
    }
}

/// Asserts that every file of a folder has a test.
#[allow(dead_code, reason = "not every test binary replays")]
pub fn assert_all(folder: &str, names: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut found: Vec<String> = fs::read_dir(folder).unwrap().map(|entry| stem(&entry.unwrap().path())).collect();
    found.sort();
    assert_eq!(found, names);
}

/// Runs a transcript, and compares or updates it.
#[allow(dead_code, reason = "not every test binary replays")]
pub fn replay(file: &str, session: &mut impl Transcript) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let expected = fs::read_to_string(&path).unwrap();
    let mut actual = String::new();
    for line in expected.lines() {
        if line.starts_with("## ") {
            actual.push_str(&format!("{line}\n"));
        }
        if let Some(command) = line.strip_prefix("$ ") {
            actual.push_str(&format!("{line}\n{}\n", run(session, command)));
        }
    }
    actual.truncate(actual.trim_end().len() + 1);
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
        return fs::write(&path, &actual).unwrap();
    }
    assert!(expected == actual, "{}", difference(&expected, &actual));
}

fn run(session: &mut impl Transcript, line: &str) -> String {
    let mut words: Vec<String> = words(line).iter().map(|word| session.word(word)).collect();
    let mut command = session.command();
    if let Some(place) = words.iter().position(|word| word == "<") {
        let file = words.drain(place..).nth(1).unwrap();
        command.stdin(File::open(session.dir().path(&file)).unwrap());
    }
    let saved = words.iter().position(|word| word == ">").map(|place| words.drain(place..).nth(1).unwrap());
    while let Some((name, value)) = words[0].split_once('=') {
        command.env(name, value);
        words.remove(0);
    }
    assert_eq!(words[0], "tollgate", "{line}");
    let output = command.args(&words[1..]).output().unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    if let Some(file) = saved {
        session.dir().write(&file, &text);
        session.text(&std::mem::take(&mut text)); // the session may learn placeholders from it
    }
    text = text.replace('\u{1b}', "\\e");
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str("<no newline>\n");
    }
    for line in String::from_utf8(output.stderr).unwrap().lines() {
        text.push_str(format!("! {line}").trim_end());
        text.push('\n');
    }
    // clap indents the empty lines of a long help; transcripts have no trailing blanks.
    let text: String = session.text(&text).lines().map(|line| format!("{}\n", line.trim_end())).collect();
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
