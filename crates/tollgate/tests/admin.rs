//! Whole sessions at the admin API of a real server with a database of its own, as text: every `$` line of
//! `tests/admin/*.txt` is run, and the file must come out again as it is. Instants are written TIME, hashes HASH, tokens
//! TOKEN_1 and their ids ID_1 (the first is that of the first start), addresses of the server ADMIN and DATA; all else
//! as in `tests/transcripts.rs`. After a change that is meant: `UPDATE_TRANSCRIPTS=1 cargo test -p tollgate --test admin`.

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

sessions!(clients, history, mistakes, overrides, rules, sources, tokens);

/// Refusals are written behind: asked for until they are there.
#[test]
fn refusals_are_listed_by_client_rule_and_minute() {
    let session = session("violations");
    let said = |args: &[&str]| {
        let output = session.command().args(args).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(said(&["violations"]), "nobody was refused\n");
    let url = session.server.url();
    let ask =
        ["check", "--url", url, "--client-key", "user:42", "--endpoint", "GET /a", "--cost", "101", "--repeat", "3"];
    assert!(said(&ask).ends_with("3 requests: 0 allowed, 3 denied\n"));
    let start = MonotonicClock::new().now();
    while said(&["violations"]) == "nobody was refused\n" {
        assert!(MonotonicClock::new().now().since(start) < Span::from_secs(30), "no refusals are written");
    }
    let list = said(&["violations", "list", "--client", "user:42", "--rule", "per-client", "--from", "1h"]);
    let lines: Vec<String> = list.lines().map(|line| squeezed(&masked(line))).collect();
    assert_eq!(lines[0], "LAST  CLIENT  RULE  ENDPOINT  REFUSED  COUNT  LIMIT");
    let cells: Vec<&str> = lines[1].split("  ").collect();
    let digest = list.split_whitespace().find(|word| word.starts_with("user:")).unwrap();
    assert!(digest.starts_with("user:#") && digest.len() == 30, "kept as a digest, found by the key: {list}");
    assert_eq!((cells[0], &cells[2..]), ("TIME", &["per-client", "/a", "3", "201", "100"][..]));
    assert_eq!(lines.len(), 2);
    // Without the age, which a slow machine changes between the two.
    let found = |args: &[&str]| said(args).lines().map(|line| squeezed(&timeless(line))).collect::<Vec<_>>();
    assert_eq!(found(&["violations", "--client", digest]), found(&["violations"]), "and by the digest itself");
    assert_eq!(said(&["violations", "--client", "user:43"]), "nobody was refused\n");
    assert!(said(&["violations", "top", "--rule", "per-client"]).contains(digest));
    let top = said(&["violations", "top", "--by", "rule"]);
    let lines: Vec<String> = top.lines().map(|line| squeezed(&masked(line))).collect();
    assert_eq!(lines, ["RULE  REFUSED  LAST", "per-client  3  TIME"]);
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
    /// Tokens and their ids, and how they are shown.
    secrets: Vec<(String, String)>,
}

impl Transcript for Session {
    fn dir(&self) -> &Dir {
        &self.dir
    }

    fn command(&self) -> Command {
        self.server.operator(&self.dir)
    }

    /// What the transcript calls by another name.
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
        for start in text.match_indices("tg_").map(|(start, _)| start) {
            let token: String = text[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            let id = token.split('_').nth(1).unwrap_or_default().to_owned();
            if id.len() > 3 && !self.secrets.iter().any(|(known, _)| *known == token) {
                let number = self.secrets.len() / 2 + 1;
                self.secrets.push((token, format!("TOKEN_{number}")));
                self.secrets.push((id, format!("ID_{number}")));
            }
        }
        // Whole tokens first: they hold their ids.
        self.secrets.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
    }
}

/// A line without what differs from run to run.
fn masked(line: &str) -> String {
    let text = timeless(line);
    let text = between(&text, "\"next_cursor\":\"", "\"", "CURSOR");
    let text = between(&text, ":#", "\" ", "DIGEST");
    let text = between(&text, "node        ", "", "NODE");
    // When a token was used is noted now and then.
    match text.strip_suffix("never").or(text.strip_suffix("TIME")).filter(|text| text.starts_with("ID_")) {
        Some(text) => format!("{text}USED"),
        None => text,
    }
}

/// How wide a column is depends on what differs: they stand side by side.
fn squeezed(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let columns = line.split("  ").map(str::trim).filter(|part| !part.is_empty());
    format!("{}{}", &line[..indent], columns.collect::<Vec<_>>().join("  "))
}

/// Writes `name` instead of what stands between `start` and the first of the letters of `end`, or the end of the line.
fn between(text: &str, start: &str, end: &str, name: &str) -> String {
    let Some((before, rest)) = text.split_once(start) else { return text.to_owned() };
    let length = rest.find(|letter| end.contains(letter)).unwrap_or(rest.len());
    format!("{before}{start}{name}{}", &rest[length..])
}

/// Instants and hashes differ from run to run, and so does how long ago it was; how far off something is, is known.
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

/// Where the next instant stands, and how long it is.
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
fn only_what_differs_is_masked() {
    let line = "  a   2026-11-15T12:00:00.123456Z (3 s ago)    b 2026-11-15T12:00:00Z (in 2 h) 2099-11-15T12:00:00Z (in 26677 d)";
    assert_eq!(squeezed(&masked(line)), "  a  TIME  b TIME (in 2 h) TIME");
    assert_eq!(
        masked("{\"id\":\"key:#12ab\",\"next_cursor\":\"abc\"}"),
        "{\"id\":\"key:#DIGEST\",\"next_cursor\":\"CURSOR\"}"
    );
}
