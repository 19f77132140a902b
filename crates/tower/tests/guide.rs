//! `docs/guide/axum.md`: the program of the page is the example, and what its console shows is what happens.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Running(Child, String);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The example, which cargo builds before it runs the tests of a crate.
fn start() -> Running {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().unwrap().parent().unwrap().join("examples/orders");
    let mut child = Command::new(program).arg("127.0.0.1:0").stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on http://").expect(&line).to_owned();
    Running(child, address)
}

/// The blocks of a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let start = format!("```{language}\n");
    let parts = page.split(&start).skip(1);
    parts.map(|part| part.split_once("```").unwrap().0.to_owned()).collect()
}

/// Commands of a console, each with what it prints.
fn commands(console: &str) -> Vec<(String, String)> {
    let parts = console.split("$ ").skip(1);
    let parts = parts.map(|part| part.split_once('\n').unwrap());
    parts.map(|(command, output)| (command.to_owned(), output.trim_end().to_owned())).collect()
}

/// The same text for any number, and for any date.
fn without_numbers(text: &str) -> String {
    let mut same = String::new();
    for line in text.lines().filter(|line| !line.starts_with("date: ")) {
        let mut letters = line.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '0'..='9' => {
                    while letters.next_if(char::is_ascii_digit).is_some() {}
                    same.push('N');
                }
                letter => same.push(letter),
            }
        }
        same.push('\n');
    }
    same
}

/// What curl would print, of the options that the page uses.
fn curl(address: &str, command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    let target = words.iter().find_map(|word| word.strip_prefix("http://127.0.0.1:3000")).expect(command);
    let field = command.split_once("-H '").map(|(_, rest)| rest.split_once('\'').unwrap().0);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let field = field.map_or(String::new(), |field| format!("{field}\r\n"));
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{field}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let head: Vec<&str> = head.lines().filter(|line| !line.starts_with("connection: ")).collect();
    match (command.contains("%{http_code}"), words[1]) {
        (true, _) => head[0].split(' ').nth(1).unwrap().to_owned(),
        (false, "-si") => format!("{}\n\n{body}", head.join("\n")),
        (false, _) => body.to_owned(),
    }
}

#[test]
fn the_guide_to_axum() {
    let page = fs::read_to_string(root().join("docs/guide/axum.md")).unwrap();
    let example = fs::read_to_string(root().join("crates/tower/examples/orders.rs")).unwrap();
    assert_eq!(blocks(&page, "rust,no_run")[0], example, "the page shows the example as it is");
    let running = start();
    let consoles = blocks(&page, "console");
    assert!(consoles.len() >= 3);
    let mut asked = 0;
    for (command, expected) in consoles.iter().flat_map(|console| commands(console)) {
        let shown = curl(&running.1, &command);
        let (shown, expected) = (shown.trim_end(), expected.trim_end());
        // A status is compared as it is; a limit that refills on a slow machine is asked until it refuses again.
        if expected.len() == 3 {
            let repeated =
                (0..50).any(|again| again == 0 && shown == expected || curl(&running.1, &command) == expected);
            assert!(repeated, "{command}");
        } else if shown.starts_with("HTTP/1.1 200") && expected.starts_with("HTTP/1.1 429") {
            let refused = (0..50).map(|_| curl(&running.1, &command)).find(|shown| shown.starts_with("HTTP/1.1 429"));
            assert_eq!(without_numbers(refused.unwrap().trim_end()), without_numbers(expected), "{command}");
        } else {
            assert_eq!(without_numbers(shown), without_numbers(expected), "{command}");
        }
        asked += 1;
    }
    assert!(asked >= 9, "{asked} commands");
}
