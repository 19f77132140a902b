//! What the pages show is what happens: every `$ curl` and every `$ tollgate …` of a console block that asks a server is
//! run against one with the example rules, and those that work on files in the repository, in order. They must print what
//! the page says, but for numbers, dates, receipts, tokens and digests. To write the pages anew:
//! `UPDATE_PAGES=1 cargo test -p tollgate --test readme`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

#[path = "readme/runbooks.rs"]
mod runbooks;
#[path = "support/server.rs"]
mod running;
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use running::Server;
use support::Dir;
use tollgate_core::{Clock, Span};
use tollgate_lab::program;
use tollgate_lab::redis::RedisServer;
use tollgate_store::MonotonicClock;
use tollgate_store_redis::check::acl_user;

/// Addresses of the servers in the pages: data ports and admin ports.
const DATA: [&str; 2] = ["127.0.0.1:8080", "127.0.0.1:8081"];
const ADMIN: [&str; 2] = ["127.0.0.1:8090", "127.0.0.1:8091"];
/// Address of the store in the pages.
const STORE: &str = "127.0.0.1:6379";

#[test]
fn readme() {
    administer("README.md", "examples/rules.yaml");
}

#[test]
fn guide_to_rules() {
    administer("docs/guide/rules.md", "examples/rules.yaml");
}

#[test]
fn guide_to_the_http_api() {
    replay("docs/guide/http-api.md", "examples/rules.yaml");
}

#[test]
fn guide_to_metered_apis() {
    replay("docs/guide/llm.md", "examples/llm.yaml");
}

#[test]
fn guide_to_plans() {
    administer("docs/guide/plans.md", "examples/plans.yaml");
}

#[test]
fn guide_to_moving_from_kong() {
    replay("docs/guide/kong.md", "examples/kong.yaml");
}

/// Two nodes and a Redis, which `redis-cli shutdown` stops.
#[test]
fn guide_to_a_fleet() {
    let page = "docs/guide/fleet.md";
    let redis = RedisServer::start();
    let store = redis.url();
    let args = ["--rules", "examples/fleet.yaml", "--http", "127.0.0.1:0", "--store", &store];
    // A busy machine responds late, which the page is not about.
    let patience = ["--store-timeout", "2s", "--decision-deadline", "4s"];
    let args: Vec<&str> = args.into_iter().chain(patience).collect();
    let dir = Dir::new("page-fleet");
    let nodes = vec![Server::start(dir.tollgate(), &args), Server::start(dir.tollgate(), &args)];
    nodes.iter().for_each(until_acquainted);
    play(page, Session { redis: Some(redis), ..Session::new(dir, nodes) });
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page)).unwrap();
    assert!(text.contains(&acl_user("tollgate", "PASSWORD")), "the line of rights is not the one in use");
}

#[test]
fn guide_to_the_admin_api() {
    administer("docs/guide/admin.md", "examples/fleet.yaml");
}

#[test]
fn guide_to_what_is_limited() {
    administer_with("docs/guide/observability.md", "examples/rules.yaml", &["--decision-ids", "true", "--node", "a"]);
}

/// Plays a page against one node with a database of its own, as an operator with the token of its first start.
fn administer(page: &str, rules: &str) {
    administer_with(page, rules, &[]);
}

/// The same with more arguments of the server.
fn administer_with(page: &str, rules: &str, more: &[&str]) {
    let dir = Dir::new(&format!("page-{}", page.replace('/', "-")));
    let args = ["--rules", rules, "--http", "127.0.0.1:0", "--state-dir", "state"];
    let args: Vec<&str> = args.iter().chain(more).copied().collect();
    let node = Server::start(dir.tollgate(), &args);
    let token = fs::read_to_string(dir.path("state/admin-token")).unwrap().trim().to_owned();
    play(page, Session { token: Some(token), ..Session::new(dir, vec![node]) });
}

/// Waits until a node knows the other one: until then its share of a limit is the whole limit.
fn until_acquainted(node: &Server) {
    let admin = node.admin.strip_prefix("http://").unwrap();
    let start = MonotonicClock::new().now();
    while !exchange(admin, &Message::get("metrics")).1.lines().any(|line| line == "tollgate_fleet_nodes 2") {
        assert!(MonotonicClock::new().now().since(start) < Span::from_secs(20), "the nodes do not find each other");
    }
}

fn replay(page: &str, rules: &str) {
    let dir = Dir::new(&format!("page-{}", page.replace('/', "-")));
    let server = Server::start(dir.tollgate(), &["--rules", rules, "--http", "127.0.0.1:0"]);
    play(page, Session::new(dir, vec![server]));
}

fn play(page: &str, mut session: Session) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let expected = fs::read_to_string(&path).unwrap();
    let actual = played(&expected, &mut session);
    assert!(session.commands >= 4, "{page} shows hardly anything");
    compare(page, &path, &expected, &actual);
}

/// The text, with what the commands of its console blocks print now.
fn played(text: &str, session: &mut Session) -> String {
    let parts = text.split("```").enumerate().map(|(index, block)| match index % 2 == 1 {
        true if block.starts_with("console\n") => session.indented_block(block),
        _ => block.to_owned(),
    });
    parts.collect::<Vec<_>>().join("```")
}

fn compare(page: &str, path: &Path, expected: &str, actual: &str) {
    if std::env::var_os("UPDATE_PAGES").is_some() {
        return fs::write(path, actual).unwrap();
    }
    for (old, new) in expected.lines().zip(actual.lines()) {
        assert_eq!(masked(old), masked(new), "in {page}");
    }
    assert_eq!(expected.lines().count(), actual.lines().count(), "{page}");
}

struct Session {
    dir: Dir,
    nodes: Vec<Server>,
    redis: Option<RedisServer>,
    /// The last one that was handed out; pages show only its beginning.
    receipt: String,
    /// The admin address, for pages about the admin API: then every `tollgate` command that asks a server is run.
    token: Option<String>,
    /// The value of `TOLLGATE_TOKEN` that the page exported.
    exported: Option<String>,
    /// Ids of tokens, and their placeholders on the page.
    ids: Vec<(String, String)>,
    /// Ids of decisions, likewise.
    decisions: Vec<(String, String)>,
    /// How many commands were run.
    commands: usize,
    /// Where the server of `redis-cli` and `tollgate store` listens, on pages that ask it.
    store_port: Option<u16>,
}

/// The ids of decisions as pages show them, in their order.
const DECISIONS: [&str; 4] = ["9c41f00d2b7a6e15", "3a309775852f7d68", "d27e5b8190c4aa3f", "61b8c7e0f5a2934d"];

impl Session {
    fn new(dir: Dir, nodes: Vec<Server>) -> Session {
        let (receipt, ids, decisions) = (String::new(), Vec::new(), Vec::new());
        let (token, exported) = (None, None);
        Session { dir, nodes, redis: None, receipt, token, exported, ids, commands: 0, store_port: None, decisions }
    }

    /// A block, which is indented if it belongs to an item of a list.
    fn indented_block(&mut self, block: &str) -> String {
        let body = block.split_once('\n').unwrap().1;
        let indent = &body[..body.len() - body.trim_start_matches(' ').len()];
        let plain: Vec<&str> = block.lines().map(|line| line.strip_prefix(indent).unwrap_or(line)).collect();
        let played = self.block(&plain.join("\n"));
        let lines = played.lines().enumerate().map(|(index, line)| match index == 0 || line.is_empty() {
            true => format!("{line}\n"),
            false => format!("{indent}{line}\n"),
        });
        lines.collect::<String>() + indent
    }

    /// The block, with what its commands print now. Commands that are not known here stay as they are.
    fn block(&mut self, block: &str) -> String {
        let mut text = String::new();
        let mut lines = block.lines().peekable();
        while let Some(line) = lines.next() {
            text.push_str(&format!("{line}\n"));
            let Some(start) = line.strip_prefix("$ ") else { continue };
            let mut command = start.to_owned();
            while command.ends_with('\\') {
                command.pop();
                let more = lines.next().unwrap();
                text.push_str(&format!("{more}\n"));
                command.push_str(more.trim_start());
            }
            let Some(output) = self.run(&command) else { continue };
            self.commands += 1;
            text.push_str(&output);
            while lines.next_if(|line| !line.starts_with("$ ")).is_some() {}
        }
        text
    }

    fn run(&mut self, command: &str) -> Option<String> {
        if let Some(made) = command.strip_prefix("export TOLLGATE_TOKEN=$(tollgate ") {
            let words = support::words(made.strip_suffix(')').unwrap());
            let output = self.nodes[0].operator(&self.dir).args(words).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            self.exported = Some(String::from_utf8(output.stdout).unwrap().trim().to_owned());
            return Some(String::new()); // the next command follows at once: the token must be known already
        }
        let (command, wanted) = command.split_once(" | grep ").unwrap_or((command, ""));
        let wanted = support::words(wanted).concat();
        let (command, last) = match command.split_once(" | tail -") {
            Some((command, lines)) => (command, lines.parse().unwrap()),
            None => (command, usize::MAX),
        };
        let output = match command.split_once(' ')? {
            ("redis-cli", "shutdown nosave") => {
                self.redis.take().unwrap().kill();
                String::new()
            }
            ("redis-cli", rest) => self.redis_cli(&support::words(rest))?,
            ("curl", rest) => self.curl(&support::words(rest)),
            ("tollgate", rest) if rest.contains("--url") => self.tollgate(&support::words(rest)),
            ("tollgate", rest) if works_on_files(rest) => self.on_files(&support::words(rest)),
            ("tollgate", rest) if self.token.is_some() && asks_a_server(rest) => self.operator(&support::words(rest)),
            _ => return None,
        };
        if self.token.is_some() {
            self.nodes[0].until_followed(&self.dir);
        }
        let is_wanted = |line: &&str| match wanted.strip_prefix('^') {
            Some(start) => line.starts_with(start),
            None => line.contains(&wanted),
        };
        let output = match self.store_port {
            Some(port) => output.replace(&format!("127.0.0.1:{port}"), STORE),
            None => output,
        };
        let lines: Vec<&str> = output.lines().filter(is_wanted).collect();
        Some(lines.iter().skip(lines.len().saturating_sub(last)).map(|line| format!("{line}\n")).collect())
    }

    /// A command on files that the page names from the root of the repository, or on the rules file of the node.
    fn on_files(&self, words: &[String]) -> String {
        let of_the_node = words.iter().any(|word| word == "rules.yaml");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = if of_the_node { self.dir.path(".") } else { root };
        let words = words.iter().flat_map(|word| match word.split_once('*') {
            Some((folder, ending)) => files(&root, folder, ending),
            None => vec![word.clone()],
        });
        let output = self.dir.tollgate().current_dir(&root).args(words).output().unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn tollgate(&self, words: &[String]) -> String {
        let words = words.iter().map(|word| self.there(word));
        let output = self.dir.tollgate().args(words).output().unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Includes standard error, as a terminal does.
    fn redis_cli(&self, words: &[String]) -> Option<String> {
        let port = self.store_port?.to_string();
        let output = Command::new(program::named("redis-cli")).args(["-p", &port]).args(words).output().unwrap();
        Some(String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    }

    /// An admin command, run on the server's machine. Includes standard error, as a terminal does.
    fn operator(&mut self, words: &[String]) -> String {
        let start = MonotonicClock::new().now();
        loop {
            let mut command = self.nodes[0].operator(&self.dir);
            command.envs(self.exported.iter().map(|token| ("TOLLGATE_TOKEN", token)));
            let output = command.args(words.iter().map(|word| self.there(word))).output().unwrap();
            let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            // Violations are written and traffic is counted asynchronously, and a second is shown when it is over; a reader
            // of the page asks later than the test.
            let is_early = match words[0].as_str() {
                "violations" => printed == "none\n",
                "why" => printed.contains("No node that was asked"),
                "top" => !printed.lines().any(|line| line.starts_with("default ")),
                _ => false,
            };
            if !is_early {
                let text = self.without_secrets(printed);
                return self.with_shown_decisions(text);
            }
            assert!(MonotonicClock::new().now().since(start) < Span::from_secs(30), "nothing is seen: {printed}");
        }
    }

    /// Replaces the ids of tokens and API keys by fixed ones, and removes their secrets.
    fn without_secrets(&mut self, mut text: String) -> String {
        let known = self.token.iter().cloned().chain(text.split_whitespace().map(str::to_owned));
        let tokens: Vec<String> = known.filter(|word| is_secret(word)).collect();
        for token in tokens {
            let (id, secret) = token["tg_".len()..].split_once('_').unwrap();
            if !self.ids.iter().any(|(known, _)| known == id) {
                let shown = ["k3vyq7mzd2xa", "p6wn4tj8rhce", "x8rk4cvn7wqd"].get(self.ids.len()).unwrap();
                self.ids.push((id.to_owned(), (*shown).to_owned()));
            }
            text = text.replace(secret, "…");
        }
        self.ids.iter().fold(text, |text, (id, shown)| text.replace(id, shown))
    }

    /// Replaces the ids of decisions by fixed ones.
    fn with_shown_decisions(&mut self, text: String) -> String {
        const NAME: &str = "\"decision_id\":\"";
        for (at, _) in text.match_indices(NAME) {
            let id = &text[at + NAME.len()..][..16];
            if !self.decisions.iter().any(|(known, _)| known == id) {
                let shown = DECISIONS.get(self.decisions.len()).unwrap();
                self.decisions.push((id.to_owned(), (*shown).to_owned()));
            }
        }
        self.decisions.iter().fold(text.clone(), |text, (id, shown)| text.replace(id, shown))
    }

    /// The subset of curl that the pages use.
    fn curl(&mut self, words: &[String]) -> String {
        let (mut message, mut url, mut with_head) = (Message::get(""), String::new(), false);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-s" => {}
                "-si" => with_head = true,
                "-d" => message.post("application/x-www-form-urlencoded", self.with_receipt(words.next().unwrap())),
                "--json" => message.post("application/json", words.next().unwrap().clone()),
                "-H" => message.headers.push(self.with_token(words.next().unwrap())),
                other => url = other.to_owned(),
            }
        }
        let (host, path) = url.strip_prefix("http://").unwrap_or(&url).split_once('/').unwrap();
        path.clone_into(&mut message.path);
        let (head, body) = exchange(&self.there(host), &message);
        let body = self.shorten(&body);
        let (head, body) = (self.with_shown_decisions(head), self.with_shown_decisions(body));
        if with_head { format!("{head}\n{body}") } else { body }
    }

    fn there(&self, text: &str) -> String {
        let address = |url: &str| url.strip_prefix("http://").unwrap().to_owned();
        let mut text = text.to_owned();
        for (node, (data, admin)) in self.nodes.iter().zip(DATA.into_iter().zip(ADMIN)) {
            text = text.replace(data, &address(node.url())).replace(admin, &address(&node.admin));
        }
        if let Some(port) = self.store_port {
            text = text.replace(STORE, &format!("127.0.0.1:{port}"));
        }
        self.decisions.iter().fold(text, |text, (id, shown)| text.replace(shown, id))
    }

    fn with_token(&self, header: &str) -> String {
        header.replace("$TOLLGATE_TOKEN", self.token.as_deref().unwrap_or_default())
    }

    fn with_receipt(&self, body: &str) -> String {
        match (body.find("tgr_"), body.find('…')) {
            (Some(start), Some(end)) => {
                format!("{}{}{}", &body[..start], self.receipt, &body[end + '…'.len_utf8()..])
            }
            _ => body.to_owned(),
        }
    }

    fn shorten(&mut self, body: &str) -> String {
        let Some(start) = body.find("tgr_") else { return body.to_owned() };
        let length = body[start..].find('"').unwrap();
        body[start..start + length].clone_into(&mut self.receipt);
        format!("{}…{}", &body[..start + 12], &body[start + length..])
    }
}

/// The files of `folder/*ending`, as a shell expands it.
fn files(root: &Path, folder: &str, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(root.join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names.into_iter().map(|name| format!("{folder}{name}")).collect()
}

/// Whether a command of the page reads files and asks no server.
fn works_on_files(command: &str) -> bool {
    command.starts_with("rules lint ")
        || command.starts_with("rules test ")
        || (command.starts_with("check ") && command.contains("--rules"))
}

/// Whether a command of the page is about a server, and not about files.
fn asks_a_server(command: &str) -> bool {
    let mut words = command.split(' ');
    match (words.next(), words.next()) {
        (Some("rules"), Some(word)) => !["lint", "test", "fmt", "explain"].contains(&word),
        (Some("check" | "explain"), _) => !command.contains("--rules"),
        (Some("serve" | "bench" | "config"), _) => false,
        _ => true,
    }
}

/// A call of curl.
struct Message {
    method: &'static str,
    path: String,
    headers: Vec<String>,
    body: String,
}

impl Message {
    fn get(path: &str) -> Message {
        Message { method: "GET", path: path.to_owned(), headers: Vec::new(), body: String::new() }
    }

    fn post(&mut self, media: &str, body: String) {
        (self.method, self.body) = ("POST", body);
        self.headers.push(format!("Content-Type: {media}"));
        self.headers.push(format!("Content-Length: {}", self.body.len()));
    }
}

/// The response: the head without its last line, and the body.
fn exchange(address: &str, message: &Message) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let Message { method, path, headers, body } = message;
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let rest = format!("{method} /{path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n{body}");
    stream.write_all(rest.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    (head.trim_end().replace("\r\n", "\n") + "\n", String::from_utf8(body).unwrap())
}

/// Replaces the parts of a line that differ between runs, but not a status.
fn masked(line: &str) -> String {
    if line.starts_with("date: ") {
        return "date".to_owned();
    }
    if line.starts_with("HTTP/") {
        return line.to_owned();
    }
    let word = |word: &str| match word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => "digest".to_owned(),
        false if word.starts_with("tg:{") => "key".to_owned(),
        false if is_client_digest(word) => "client".to_owned(),
        false if is_secret(word) => "token".to_owned(),
        false => word.to_owned(),
    };
    let mut text = line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    if let (Some(start), Some(end)) = (text.find("tgr_"), text.find('…')) {
        text.replace_range(start..end, "receipt");
    }
    without_digits(&without_distances(&without_days(&without_client_digests(&text))))
}

/// Replaces `user:#7d62…` inside documents.
fn without_client_digests(text: &str) -> String {
    let mut parts = text.split(":#");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        shown.push_str(if digits == 24 { ":#digest" } else { ":#" });
        shown.push_str(if digits == 24 { &part[24..] } else { part });
    }
    shown
}

/// A token, or an API key.
fn is_secret(word: &str) -> bool {
    word.starts_with("tg_") || word.starts_with("tk_")
}

/// `user:#7d62…`: the digest of a client key, which differs in every database.
fn is_client_digest(word: &str) -> bool {
    let digest = word.split_once(":#").map(|(_, digest)| digest);
    digest.is_some_and(|digest| digest.len() == 24 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Masks the day in `Date: Sun, 15 Nov`.
fn without_days(text: &str) -> String {
    if !text.starts_with("Date: ") {
        return text.to_owned();
    }
    let is_name =
        |word: &&str| !word.ends_with(',') && word.parse::<u32>().is_err() && word.len() == 3 && *word != "GMT";
    text.split(' ').filter(|word| !word.ends_with(',') && !is_name(word)).collect::<Vec<_>>().join(" ")
}

/// Replaces `(now)`, `(3 s ago)` and `(in 2 h)` by `(then)`.
fn without_distances(text: &str) -> String {
    let parts = text.split('(').map(|part| match part.split_once(')') {
        Some((inner, rest)) if inner == "now" || inner.starts_with("in ") || inner.ends_with(" ago") => {
            format!("then){rest}")
        }
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("(")
}

fn without_digits(text: &str) -> String {
    let mut shown = String::new();
    for letter in text.chars() {
        match letter.is_ascii_digit() {
            true if shown.ends_with('#') => {}
            true => shown.push('#'),
            false => shown.push(letter),
        }
    }
    shown
}
