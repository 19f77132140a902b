//! Calls of the admin commands, and their handling of responses, on a listener that records every call and sends canned
//! responses. `tests/admin.rs` covers a real server.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread::{self, JoinHandle};

use support::Dir;

/// Sends one response per connection; `None` closes the connection without a response.
struct Listener {
    url: String,
    calls: JoinHandle<Vec<Call>>,
}

/// A recorded call.
#[derive(Debug)]
struct Call {
    line: String,
    headers: String,
    body: String,
}

impl Call {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

impl Listener {
    fn new<const N: usize>(answers: [Option<&str>; N]) -> Listener {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answers = answers.map(|answer| answer.map(str::to_owned));
        let calls = thread::spawn(move || answers.into_iter().map(|answer| serve(&listener, answer)).collect());
        Listener { url, calls }
    }

    fn calls(self) -> Vec<Call> {
        self.calls.join().unwrap()
    }
}

fn serve(listener: &TcpListener, answer: Option<String>) -> Call {
    let (mut stream, _) = listener.accept().unwrap();
    let call = read(&stream);
    if let Some(answer) = answer {
        let (head, body) = answer.split_once('\n').unwrap_or((&answer, ""));
        let head = head.replace(" | ", "\r\n");
        let length = body.len();
        let text = format!("HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).unwrap();
    }
    call
}

fn read(stream: &TcpStream) -> Call {
    let mut reader = BufReader::new(stream);
    let (mut line, mut headers) = (String::new(), String::new());
    reader.read_line(&mut line).unwrap();
    while !headers.ends_with("\r\n\r\n") && headers != "\r\n" {
        assert_ne!(reader.read_line(&mut headers).unwrap(), 0, "{headers}");
    }
    let length = headers.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    Call { line: line.trim_end().to_owned(), headers, body: String::from_utf8(body).unwrap() }
}

fn run(mut command: Command, url: &str, args: &[&str]) -> (i32, String, String) {
    let output = command.args(args).args(["--url", url]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

const RULE: &str = r#"{"rule_id":"a","namespace":"default","limit":{"requests":10,"window":"1s"},"version":3}"#;
const CREATE: [&str; 8] = ["rules", "create", "--id", "a", "--limit", "10", "--window", "1s"];

#[test]
fn a_create_is_retried_once_with_the_same_key_after_a_broken_connection() {
    let dir = Dir::new("admin-retry");
    let created = format!("201 Created | ETag: \"3\"\n{RULE}");
    let listener = Listener::new([None, Some(&created)]);
    let (code, text, error) = run(dir.tollgate(), &listener.url, &CREATE);
    assert_eq!((code, error.as_str()), (0, ""));
    assert_eq!(text, "created rule a: 10 per 1s for every request (version 3)\n");
    let calls = listener.calls();
    let key = calls[0].header("idempotency-key").unwrap();
    assert_eq!(key.len(), 32);
    assert_eq!(calls[1].header("idempotency-key"), Some(key));
    assert_eq!(calls[0].body, r#"{"limit":{"requests":10,"window":"1s"},"rule_id":"a"}"#);
    assert_eq!((&calls[0].line, &calls[0].body), (&calls[1].line, &calls[1].body));
    assert_eq!(calls[0].line, "POST /v1/rules HTTP/1.1");

    let listener = Listener::new([None, None]);
    let (code, text, error) = run(dir.tollgate(), &listener.url, &CREATE);
    assert!(code == 2 && text.is_empty() && error.contains("closed the connection without a response"), "{error}");
    let again = listener.calls();
    assert_ne!(again[0].header("idempotency-key"), Some(key), "every command has a key of its own");
}

#[test]
fn an_update_sends_the_version_and_explains_a_conflict() {
    let dir = Dir::new("admin-update");
    let there = format!("200 OK | ETag: \"3\"\n{RULE}");
    let stale = "412 Precondition Failed\n{\"code\":\"stale\",\"detail\":\"rule a was changed\"}";
    let listener = Listener::new([Some(&there), Some(stale)]);
    let (code, _, error) = run(dir.tollgate(), &listener.url, &["rules", "update", "a", "--limit", "20"]);
    let expected = "error: it was changed in the meantime; nothing was written (stale, status 412)\n  check its current \
                    state, then try again\n";
    assert_eq!((code, error.as_str()), (1, expected));
    let calls = listener.calls();
    assert_eq!((calls[1].line.as_str(), calls[1].header("if-match")), ("PATCH /v1/rules/a HTTP/1.1", Some("\"3\"")));
    assert_eq!(calls[1].body, r#"{"limit":{"requests":20}}"#);
}

#[test]
fn an_update_from_a_file_sends_its_version() {
    let dir = Dir::new("admin-file");
    let there = format!("200 OK | ETag: \"3\"\n{RULE}");
    let listener = Listener::new([Some(&there)]);
    let (code, text, _) = run(dir.tollgate(), &listener.url, &["rules", "get", "a"]);
    assert_eq!(code, 0);
    dir.write("rule.yaml", text.replace("10", "30"));
    let newer = there.replace('3', "5");
    let listener = Listener::new([Some(&newer), Some(&newer)]);
    let (code, _, error) = run(dir.tollgate(), &listener.url, &["rules", "update", "a", "--file", "rule.yaml"]);
    assert_eq!((code, error.as_str()), (0, ""));
    let calls = listener.calls();
    assert_eq!((calls[1].line.as_str(), calls[1].header("if-match")), ("PUT /v1/rules/a HTTP/1.1", Some("\"3\"")));
    assert_eq!(calls[1].body, r#"{"limit":{"requests":30,"window":"1s"}}"#);
}

#[test]
fn the_token_file_of_the_first_start_is_used_locally() {
    let dir = Dir::new("admin-token");
    fs::create_dir_all(dir.path("data/tollgate")).unwrap();
    dir.write("data/tollgate/admin-token", "tg_first_secret\n");
    dir.write("mine", "tg_mine_secret\n");
    let mode = "200 OK\n{\"mode\":\"enforce\",\"scope\":\"fleet\"}";
    let presented = |prepare: &dyn Fn(&mut Command), args: &[&str]| {
        let listener = Listener::new([Some(mode)]);
        let mut command = dir.tollgate();
        prepare(&mut command);
        let (code, text, error) = run(command, &listener.url, &[&["mode"], args].concat());
        assert_eq!((code, text.as_str(), error.as_str()), (0, "enforce, the whole fleet\n", ""));
        listener.calls()[0].header("authorization").map(str::to_owned)
    };
    let first = Some("Bearer tg_first_secret".to_owned());
    assert_eq!(presented(&|command| _ = command.env("XDG_DATA_HOME", dir.path("data")), &[]), first);
    assert_eq!(presented(&|command| _ = command.env("STATE_DIRECTORY", dir.path("data/tollgate")), &[]), first);
    assert_eq!(presented(&|command| _ = command.env("TOLLGATE_STATE_DIR", dir.path("data/tollgate")), &[]), first);
    assert_eq!(presented(&|command| _ = command.env("HOME", dir.path("data")), &[]), None);
    let own = |command: &mut Command| {
        command.env("XDG_DATA_HOME", dir.path("data")).env("TOLLGATE_TOKEN", "tg_env_secret");
    };
    assert_eq!(presented(&own, &[]), Some("Bearer tg_env_secret".to_owned()));
    assert_eq!(presented(&own, &["--token-file", "mine"]), Some("Bearer tg_mine_secret".to_owned()));
}

#[test]
fn lists_follow_cursors_up_to_the_limit() {
    let dir = Dir::new("admin-pages");
    let page = |ids: &[&str], cursor: &str| {
        let rules: Vec<String> = ids.iter().map(|id| format!("{{\"rule_id\":\"{id}\"}}")).collect();
        format!("200 OK\n{{\"rules\":[{}],\"next_cursor\":{cursor}}}", rules.join(","))
    };
    let (first, last) = (page(&["a", "b"], "\"x y\""), page(&["c"], "null"));
    let listener = Listener::new([Some(&first), Some(&last)]);
    let args = ["rules", "list", "--all", "--json", "--tier", "a&b", "--namespace", "shop"];
    let (code, text, _) = run(dir.tollgate(), &listener.url, &args);
    let expected =
        "{\"rules\":[\n{\"rule_id\":\"a\"},\n{\"rule_id\":\"b\"},\n{\"rule_id\":\"c\"}\n],\"next_cursor\":null}\n";
    assert_eq!((code, text.as_str()), (0, expected));
    let calls = listener.calls();
    assert_eq!(calls[0].line, "GET /v1/rules?namespace=shop&tier=a%26b&limit=1000 HTTP/1.1");
    assert_eq!(calls[1].line, "GET /v1/rules?namespace=shop&tier=a%26b&limit=1000&cursor=x%20y HTTP/1.1");

    let listener = Listener::new([Some(&first)]);
    let (_, text, _) = run(dir.tollgate(), &listener.url, &["rules", "list", "--limit", "2"]);
    assert!(text.ends_with("\nthere are more: --limit N or --all\n"), "{text}");
    assert_eq!(listener.calls()[0].line, "GET /v1/rules?limit=2 HTTP/1.1");
}

#[test]
fn a_wrong_listener_and_a_missing_token_get_advice() {
    let dir = Dir::new("admin-wrong");
    let elsewhere = "404 Not Found\n{\"code\":\"no_such_path\",\"detail\":\"There is no such path.\"}";
    let unknown = "401 Unauthorized\n{\"code\":\"no_token\",\"detail\":\"A token is needed.\"}";
    for (answer, code, message) in [
        (
            elsewhere,
            2,
            "error: There is no such path. (no_such_path, status 404)\n  is this the admin listener? it is http://127.0.0.1:8090 unless `admin` says otherwise\n",
        ),
        (
            unknown,
            2,
            "error: A token is needed. (no_token, status 401)\n  no token was sent: set TOLLGATE_TOKEN, or name a file with --token-file; the first start of a server printed one, or wrote it to the file admin-token beside its database; `tollgate db token` creates another, on a machine that can reach the database\n",
        ),
        ("200 OK\n<html>", 2, "is not a Tollgate server: it responded with status 200 and no media type\n"),
    ] {
        let listener = Listener::new([Some(answer)]);
        let (got, text, error) = run(dir.tollgate(), &listener.url, &["status"]);
        assert_eq!((got, text.as_str()), (code, ""), "{error}");
        assert!(error.ends_with(message), "{error}");
        listener.calls();
    }
}

#[test]
fn an_import_without_confirmation_deletes_nothing() {
    let dir = Dir::new("admin-prune");
    dir.write("rules.yaml", "rules: []\n");
    let would = r#"200 OK
{"dry_run":true,"generation":4,"changes":[{"kind":"rule","namespace":"default","id":"a","before":{"rule_id":"a"},"after":null}]}"#;
    let listener = Listener::new([Some(would)]);
    let args = ["rules", "import", "rules.yaml", "--prune"];
    let (code, text, error) = run(dir.tollgate(), &listener.url, &args);
    let expected = "error: this would delete 1: confirm with --yes, or preview with --dry-run\n";
    assert_eq!((code, text.as_str(), error.as_str()), (2, "", expected));
    let calls = listener.calls();
    assert_eq!(calls[0].line, "POST /v1/rules/import?prune=true&dry_run=true HTTP/1.1");
    assert_eq!((calls[0].header("content-type"), calls[0].body.as_str()), (Some("application/yaml"), "rules: []\n"));

    let listener = Listener::new([Some(would)]);
    let (code, text, _) = run(dir.tollgate(), &listener.url, &["rules", "diff", "rules.yaml", "--prune"]);
    assert_eq!((code, text.as_str()), (1, "- rule a  (- for every request)\n1 deleted\n"));
    listener.calls();
    let invalid = "422 Unprocessable Content\n{\"code\":\"invalid_body\",\"detail\":\"x\"}";
    let listener = Listener::new([Some(invalid)]);
    let (code, _, error) = run(dir.tollgate(), &listener.url, &["rules", "diff", "rules.yaml"]);
    assert_eq!((code, error.as_str()), (2, "error: x (invalid_body, status 422)\n"), "1 would say that they differ");
    listener.calls();
}
