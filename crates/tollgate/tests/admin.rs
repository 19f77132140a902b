//! Transcripts of admin sessions on a real server with its own database: the test runs every `$` line of
//! `tests/admin/*.txt` and compares the output. Timestamps are shown as TIME, hashes as HASH, tokens as TOKEN_1 and
//! their ids as ID_1 (the first is the token of the first start), addresses of the server as ADMIN and DATA; otherwise
//! as in `tests/transcripts.rs`. To update: `UPDATE_TRANSCRIPTS=1 cargo test -p tollgate --test admin`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

#[path = "support/server.rs"]
mod running;
mod support;

use std::fs;
use std::process::Command;

use running::Server;
use support::Dir;
use support::transcript::{self, Transcript};
use tollgate_core::{Clock, Span};
use tollgate_store::MonotonicClock;

macro_rules! sessions {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { replay(stringify!($name)); })*

        #[test]
        fn every_session_is_replayed() {
            transcript::assert_all("tests/admin", &[$(stringify!($name)),*]);
        }
    };
}

sessions!(clients, grants, history, keys, mistakes, overrides, rules, sources, tokens);

/// Violations are written asynchronously: the test polls for them.
#[test]
fn violations_are_listed_by_client_rule_and_minute() {
    let session = session("violations");
    let stdout = |args: &[&str]| {
        let output = session.command().args(args).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(stdout(&["violations"]), "no violations\n");
    let url = session.server.url();
    let ask =
        ["check", "--url", url, "--client-key", "user:42", "--endpoint", "GET /a", "--cost", "101", "--repeat", "3"];
    assert!(stdout(&ask).ends_with("3 requests: 0 allowed, 3 denied\n"));
    let start = MonotonicClock::new().now();
    while stdout(&["violations"]) == "no violations\n" {
        assert!(MonotonicClock::new().now().since(start) < Span::from_secs(30), "no violations are written");
    }
    let list = stdout(&["violations", "list", "--client", "user:42", "--rule", "per-client", "--from", "1h"]);
    let lines: Vec<String> = list.lines().map(|line| squeezed(&masked(line))).collect();
    assert_eq!(lines[0], "LAST  CLIENT  RULE  ENDPOINT  REFUSED  COUNT  LIMIT");
    let cells: Vec<&str> = lines[1].split("  ").collect();
    let digest = list.split_whitespace().find(|word| word.starts_with("user:")).unwrap();
    assert!(digest.starts_with("user:#") && digest.len() == 30, "stored as a digest, found by the key: {list}");
    assert_eq!((cells[0], &cells[2..]), ("TIME", &["per-client", "/a", "3", "201", "100"][..]));
    assert_eq!(lines.len(), 2);
    // Without the age, which differs between the two calls on a slow machine.
    let found = |args: &[&str]| stdout(args).lines().map(|line| squeezed(&timeless(line))).collect::<Vec<_>>();
    assert_eq!(found(&["violations", "--client", digest]), found(&["violations"]), "and by the digest itself");
    assert_eq!(stdout(&["violations", "--client", "user:43"]), "no violations\n");
    assert!(stdout(&["violations", "top", "--rule", "per-client"]).contains(digest));
    let top = stdout(&["violations", "top", "--by", "rule"]);
    let lines: Vec<String> = top.lines().map(|line| squeezed(&masked(line))).collect();
    assert_eq!(lines, ["RULE  REFUSED  LAST", "per-client  3  TIME"]);
}

/// The history of usage is written asynchronously: the test polls for it.
#[test]
fn usage_of_quotas_is_listed_by_client_rule_and_period() {
    let session = session("usage");
    let stdout = |args: &[&str]| {
        let output = session.command().args(args).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(stdout(&["usage", "history"]), "no usage\n");
    assert!(stdout(&["rules", "import", "quotas.yaml"]).starts_with("1 created"));
    session.server.until_followed(&session.dir);
    let url = session.server.url();
    let checked = stdout(&["check", "--url", url, "--user-id", "42", "--cost", "7"]);
    assert!(checked.starts_with("allowed"), "{checked}");
    let start = MonotonicClock::new().now();
    while stdout(&["usage", "history"]) == "no usage\n" {
        assert!(MonotonicClock::new().now().since(start) < Span::from_secs(30), "no usage is written");
    }
    let list = stdout(&["usage", "history", "--client", "user:42", "--rule", "yearly", "--from", "1h"]);
    let lines: Vec<String> = list.lines().map(|line| squeezed(&masked(line))).collect();
    let expected = [
        "NAMESPACE  CLIENT  RULE  PERIOD  USED  LIMIT  AS OF",
        "default  user:#DIGEST  yearly  TIME to TIME  7  100  TIME",
    ];
    assert_eq!(lines, expected);
    let csv = stdout(&["usage", "history", "--csv"]);
    let rows: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert!(rows.len() == 2 && rows[0].starts_with("namespace,client_key,"), "{csv}");
    assert!(
        rows[1].starts_with("default,user:#") && rows[1].contains(",yearly,") && rows[1].contains(",7,100,"),
        "{csv}"
    );
    let json = stdout(&["usage", "history", "--json"]);
    assert!(json.contains("\"used\":7") && json.ends_with("],\"next_cursor\":null}\n"), "{json}");
    assert_eq!(stdout(&["usage", "history", "--client", "user:43"]), "no usage\n");
    assert_eq!(stdout(&["usage", "history", "--org", "acme"]), "no usage\n");
}

fn replay(name: &str) {
    transcript::replay(&format!("tests/admin/{name}.txt"), &mut session(name));
}

fn session(name: &str) -> Session {
    let dir = Dir::new(&format!("admin-{name}"));
    let args = ["--http", "127.0.0.1:0", "--state-dir", "state", "--rules", "examples/fleet.yaml"];
    let server = Server::start(dir.tollgate(), &args);
    let mut session = Session { server, dir, secrets: Vec::new() };
    let first = fs::read_to_string(session.dir.path("state/admin-token")).unwrap();
    session.learn(&first);
    session
}

struct Session {
    server: Server,
    dir: Dir,
    /// Tokens and their ids, with their placeholders.
    secrets: Vec<(String, String)>,
}

impl Transcript for Session {
    fn dir(&self) -> &Dir {
        &self.dir
    }

    fn command(&self) -> Command {
        self.server.operator(&self.dir)
    }

    /// Replaces placeholders by their values.
    fn word(&self, word: &str) -> String {
        let unmasked = |word: String, (secret, shown): &(String, String)| word.replace(shown, secret);
        let word = self.secrets.iter().fold(word.to_owned(), unmasked);
        word.replace("ADMIN", &self.server.admin).replace("DATA", self.server.url())
    }

    fn text(&mut self, text: &str) -> String {
        self.learn(text);
        self.server.until_followed(&self.dir);
        let original = text;
        let mut text = text.replace(&self.server.admin, "ADMIN").replace(self.server.url(), "DATA");
        for (secret, shown) in &self.secrets {
            text = text.replace(secret, shown);
        }
        let shown: String = text.lines().map(|line| masked(line) + "\n").collect();
        if shown == original { shown } else { shown.lines().map(|line| squeezed(line) + "\n").collect() }
    }
}

impl Session {
    fn learn(&mut self, text: &str) {
        self.learn_all(text, "tg_", "TOKEN_", "ID_");
        self.learn_all(text, "tk_", "SECRET_", "KEY_");
        // Whole tokens first: they contain their ids.
        self.secrets.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
    }

    /// Remembers the secrets that begin so, and their ids. A rotated key has several secrets, and one id.
    fn learn_all(&mut self, text: &str, prefix: &str, secrets: &str, ids: &str) {
        for start in text.match_indices(prefix).map(|(start, _)| start) {
            let secret: String = text[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            let id = secret.split('_').nth(1).unwrap_or_default().to_owned();
            for (text, shown) in [(secret, secrets), (id.clone(), ids)] {
                if id.len() > 3 && !self.secrets.iter().any(|(known, _)| *known == text) {
                    let number = self.secrets.iter().filter(|(_, name)| name.starts_with(shown)).count() + 1;
                    self.secrets.push((text, format!("{shown}{number}")));
                }
            }
        }
    }
}

/// Replaces the parts of a line that differ between runs.
fn masked(line: &str) -> String {
    let text = timeless(line);
    let text = between(&text, "\"next_cursor\":\"", "\"", "CURSOR");
    let text = between(&text, ":#", "\" ", "DIGEST");
    let text = between(&text, "\"fingerprint\":\"", "\"", "DIGEST");
    let text = between(&text, "node        ", "", "NODE");
    // The last use of a token is updated only now and then.
    match text.strip_suffix("never").or(text.strip_suffix("TIME")).filter(|text| text.starts_with("ID_")) {
        Some(text) => format!("{text}USED"),
        None => text,
    }
}

/// Collapses the padding of columns, whose width depends on masked values.
fn squeezed(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let columns = line.split("  ").map(str::trim).filter(|part| !part.is_empty());
    format!("{}{}", &line[..indent], columns.collect::<Vec<_>>().join("  "))
}

/// Replaces the text between `start` and the first character of `end`, or the end of the line, by `name`.
fn between(text: &str, start: &str, end: &str, name: &str) -> String {
    let Some((before, rest)) = text.split_once(start) else { return text.to_owned() };
    let length = rest.find(|letter| end.contains(letter)).unwrap_or(rest.len());
    format!("{before}{start}{name}{}", &rest[length..])
}

/// Masks timestamps, hashes and distances in the past; distances in the future do not differ between runs.
fn timeless(line: &str) -> String {
    let is_hash = |word: &&str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words = line.split(|letter: char| !letter.is_ascii_alphanumeric());
    let line = words.filter(is_hash).fold(line.to_owned(), |line, hash| line.replace(hash, "HASH"));
    let (mut shown, mut rest) = (String::new(), line.as_str());
    while let Some((start, length)) = instant(rest) {
        shown.push_str(&rest[..start]);
        shown.push_str("TIME");
        rest = &rest[start + length..];
        let distance = rest.strip_prefix(" (").and_then(|inner| inner.split_once(')'));
        let passes = |text: &str| text == "now" || text.ends_with(" ago") || (text.ends_with(" d") && text.len() > 8);
        if let Some((_, after)) = distance.filter(|(text, _)| passes(text)) {
            rest = after;
        }
    }
    shown + rest
}

/// Offset and length of the next timestamp.
fn instant(text: &str) -> Option<(usize, usize)> {
    let is_instant = |part: &str| {
        let pattern = "0000-00-00T00:00:00";
        part.len() >= pattern.len()
            && pattern.chars().zip(part.chars()).all(|(p, c)| if p == '0' { c.is_ascii_digit() } else { p == c })
    };
    let start = text.char_indices().map(|(at, _)| at).find(|at| is_instant(&text[*at..]))?;
    Some((start, text[start..].find('Z')? + 1))
}

#[test]
fn masks_only_values_that_differ_between_runs() {
    let line = "  a   2026-11-15T12:00:00.123456Z (3 s ago)    b 2026-11-15T12:00:00Z (in 2 h) 2099-11-15T12:00:00Z (in 26677 d)";
    assert_eq!(squeezed(&masked(line)), "  a  TIME  b TIME (in 2 h) TIME");
    assert_eq!(
        masked("{\"id\":\"key:#12ab\",\"next_cursor\":\"abc\"}"),
        "{\"id\":\"key:#DIGEST\",\"next_cursor\":\"CURSOR\"}"
    );
}
