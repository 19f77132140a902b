//! Pages of the guide that protect an application in five minutes: their files are written, their application is started
//! in front of a server with their rules, and every `$` line of their console blocks prints what the page says, but for
//! numbers and dates. To write them anew: `UPDATE_PAGES=1 cargo test -p tollgate --test sdk guide`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tollgate_lab::process::{self, Process};

use crate::languages::{self, root};
use crate::limiter::serve;

/// Where applications of pages listen.
const LISTENS: &str = "127.0.0.1:3000";

#[test]
fn express() {
    let directory = process::directory();
    let modules = directory.path().join("node_modules");
    let library = root().join("sdk/typescript");
    languages::program("typescript"); // builds the package
    fs::create_dir(&modules).unwrap();
    std::os::unix::fs::symlink(library.join("node_modules/express"), modules.join("express")).unwrap();
    std::os::unix::fs::symlink(&library, modules.join("tollgate")).unwrap();
    // A busy machine answers late, which the page is not about.
    let patient = |file: &str| file.replace("    fallback:", "    timeoutMs: 10_000,\n    fallback:");
    play("docs/guide/express.md", directory, "typescript", &["node", "server.mjs"], patient);
}

/// Plays a page. The application prints the port that it listens on, as the last word of its first line.
fn play(page: &str, directory: TempDir, language: &str, start: &[&str], patient: impl Fn(&str) -> String) {
    let path = root().join(page);
    let text = fs::read_to_string(&path).unwrap();
    for (name, file) in files(&text) {
        fs::write(directory.path().join(name), patient(file)).unwrap();
    }
    let rules = directory.path().join("rules.yaml");
    let lint = Command::new(env!("CARGO_BIN_EXE_tollgate")).args(["rules", "lint"]).arg(&rules).output().unwrap();
    assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stdout));
    let (limiter, address) = serve(directory.path(), &rules, &["--retry-jitter", "off"]);
    let mut command = languages::command(language, start);
    command.current_dir(directory.path()).env("PORT", "0").env("TOLLGATE_URL", format!("http://{address}"));
    command.env_remove("TOLLGATE_DATA_TOKEN").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut application = Application(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(application.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.split_whitespace().last().unwrap_or_default();
    let mut session = Session { limiter, listens: format!("127.0.0.1:{port}") };

    let parts = text.split("```").enumerate();
    let played = parts.map(|(index, part)| match index % 2 == 1 && part.starts_with("console\n") {
        true => session.block(part),
        false => part.to_owned(),
    });
    let played = played.collect::<Vec<_>>().join("```");
    if std::env::var_os("UPDATE_PAGES").is_some() {
        return fs::write(&path, played).unwrap();
    }
    for (old, new) in text.lines().zip(played.lines()) {
        assert_eq!(masked(old), masked(new), "in {page}");
    }
    assert_eq!(text.lines().count(), played.lines().count(), "{page}");
}

/// The files of a page: a line with the name and a colon, then the block.
fn files(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("\n\n`").skip(1).filter_map(|part| {
        let (name, rest) = part.split_once("`:\n```")?;
        let (_, file) = rest.split_once('\n')?;
        Some((name, file.split("```").next()?))
    })
}

struct Session {
    limiter: Process,
    /// Where the application really listens.
    listens: String,
}

impl Session {
    fn block(&mut self, block: &str) -> String {
        let commands = block.lines().filter(|line| line.starts_with("$ "));
        let played: String = commands.map(|line| format!("{line}\n{}", self.run(&line[2..]))).collect();
        format!("console\n{played}")
    }

    /// What a command prints; the server is the shell's first job.
    fn run(&mut self, command: &str) -> String {
        if command == "kill %1" {
            self.limiter.kill();
            return String::new();
        }
        let output = Command::new("sh").arg("-c").arg(command.replace(LISTENS, &self.listens)).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap().replace('\r', "");
        if text.is_empty() || text.ends_with('\n') { text } else { format!("{text}\n") }
    }
}

/// Killed when dropped.
struct Application(Child);

impl Drop for Application {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A line without its numbers, except for a status.
fn masked(line: &str) -> String {
    if line.starts_with("HTTP/") || line.len() == 3 {
        return line.to_owned();
    }
    let line = if line.starts_with("Date: ") { "Date" } else { line };
    let mut text = String::new();
    for letter in line.chars() {
        match letter.is_ascii_digit() {
            true if text.ends_with('0') => {}
            true => text.push('0'),
            false => text.push(letter),
        }
    }
    text
}

/// A page that is not there would pass.
#[test]
fn pages_have_files_and_commands() {
    let text = fs::read_to_string(root().join("docs/guide/express.md")).unwrap();
    let names: Vec<&str> = files(&text).map(|(name, _)| name).collect();
    assert_eq!(names, ["server.mjs", "rules.yaml"]);
    assert!(text.matches("\n$ curl ").count() >= 6);
    assert!(Path::new(env!("CARGO_BIN_EXE_tollgate")).is_file());
}
