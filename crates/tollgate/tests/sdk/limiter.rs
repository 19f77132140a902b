//! The server of the tables: the real binary, behind a link.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;
use tollgate_lab::process::{self, Process, Signal};

use crate::http;
use crate::languages::root;
use crate::link::Link;

/// The data token of servers that want one.
pub const TOKEN: &str = "conformance-conformance-conformance-0";

/// Settings of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimiterSettings {
    /// It wants [`TOKEN`].
    pub wants_token: bool,
    /// Its shared store is away.
    pub store_is_away: bool,
}

/// A running server, and the link that programs are given.
pub struct Limiter {
    pub settings: LimiterSettings,
    pub link: Link,
    process: Process,
    address: SocketAddr,
    directory: TempDir,
}

impl Limiter {
    pub fn start(settings: LimiterSettings) -> Limiter {
        let directory = process::directory();
        fs::write(directory.path().join("tokens"), format!("{TOKEN}\n")).unwrap();
        fs::write(directory.path().join("secret"), "1".repeat(64)).unwrap();
        let (process, address) = start(directory.path(), &settings);
        Limiter { settings, link: Link::start(address), process, address, directory }
    }

    /// Its own address, beside the link.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn halt(&self) {
        self.process.halt();
    }

    pub fn go_on(&self) {
        self.process.signal(Signal::CONT);
    }

    /// Another process, with empty buckets, behind the same link.
    pub fn restart(&mut self) {
        self.process.kill();
        (self.process, self.address) = start(self.directory.path(), &self.settings);
        self.link.set_upstream(self.address);
    }

    /// A check, asked of the server itself.
    pub fn check(&self, request: &Value) -> Result<Value, String> {
        let body = request.to_string();
        let head = format!("POST /v1/check HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n", self.address, body.len());
        let token =
            if self.settings.wants_token { format!("Authorization: Bearer {TOKEN}\r\n") } else { String::new() };
        let request = format!("{head}{token}Content-Type: application/json\r\nConnection: close\r\n\r\n{body}");
        let from = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let answer = http::exchange(self.address, from, request.as_bytes(), true)?;
        serde_json::from_slice(&answer.body).map_err(|error| format!("{error}: {}", answer.text()))
    }
}

fn start(directory: &Path, settings: &LimiterSettings) -> (Process, SocketAddr) {
    let mut arguments = vec!["--retry-jitter", "off"];
    if settings.wants_token {
        arguments.extend(["--token-file", "tokens"]);
    }
    if settings.store_is_away {
        arguments.extend(["--store", "redis://127.0.0.1:1", "--secret-file", "secret"]);
    }
    serve(directory, &root().join("sdk/conformance/rules.yaml"), &arguments)
}

/// `tollgate serve` with a rules file, on a free port.
pub fn serve(directory: &Path, rules: &Path, arguments: &[&str]) -> (Process, SocketAddr) {
    let mut process = Process::start(Path::new(env!("CARGO_BIN_EXE_tollgate")), |command| {
        command.current_dir(directory).env_clear().env("TOLLGATE_STATE_DIR", directory);
        command.args(["serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"]).args(arguments);
        command.arg("--rules").arg(rules).stdout(Stdio::piped()).stderr(Stdio::null());
    })
    .unwrap();
    let mut lines = BufReader::new(process.stdout().unwrap()).lines().map_while(Result::ok);
    let address =
        lines.find_map(|line| line.strip_prefix("listening on http://").map(|address| address.parse().unwrap()));
    (process, address.expect("the server starts"))
}
