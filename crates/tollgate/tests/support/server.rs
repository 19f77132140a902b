//! The binary as a server on free ports, killed when dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tollgate_core::{Clock, Span};
use tollgate_store::MonotonicClock;

use crate::support::Dir;

/// A running server.
#[allow(dead_code, reason = "not every test binary looks at everything")]
pub struct Server {
    child: Child,
    /// Its startup banner, without the curl command.
    pub announced: String,
    /// The addresses of the lines `listening on …`.
    pub urls: Vec<String>,
    /// Metrics address.
    pub admin: String,
}

impl Server {
    /// Starts `tollgate serve` in the directory of `command`.
    pub fn start(mut command: Command, args: &[&str]) -> Server {
        command.args(["serve", "--admin", "127.0.0.1:0"]).args(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let said: Vec<String> = lines.by_ref().take_while(|line| !line.starts_with("try: ")).collect();
        let after = |start: &str| -> Vec<String> {
            said.iter().filter_map(|line| line.strip_prefix(start)).map(str::to_owned).collect()
        };
        let urls = after("listening on ");
        assert!(!urls.is_empty(), "the server did not start: {said:?}");
        let admin = after("admin on ")[0].split(',').next().unwrap().to_owned();
        Server { child, announced: said.join("\n"), urls, admin }
    }

    /// The id of its process.
    #[allow(dead_code, reason = "not every test binary ends servers elsewhere")]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// An admin command on the machine of this server, whose state directory is `state`.
    #[allow(dead_code, reason = "not every test binary administers")]
    pub fn operator(&self, dir: &Dir) -> Command {
        let mut command = dir.tollgate();
        command.env("TOLLGATE_URL", &self.admin).env("TOLLGATE_STATE_DIR", dir.path("state"));
        command
    }

    /// Waits until the node applies all changes.
    #[allow(dead_code, reason = "not every test binary administers")]
    pub fn until_followed(&self, dir: &Dir) {
        let start = MonotonicClock::new().now();
        let told = |args: &[&str], pointer: &str| {
            let output = self.operator(dir).args(args).arg("--json").output().unwrap();
            let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            told.pointer(pointer).cloned()
        };
        let newest = told(&["rules", "generations", "--limit", "1"], "/generations/0/generation");
        while newest.is_some()
            && told(&["status"], "/generation").and_then(|n| n.as_i64()) < newest.as_ref().and_then(Value::as_i64)
        {
            assert!(MonotonicClock::new().now().since(start) < Span::from_secs(20), "the node does not follow");
        }
    }

    /// Ends it as an operator does, and waits until it is over.
    #[allow(dead_code, reason = "not every test binary starts a node again")]
    pub fn end(mut self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }

    /// The first address.
    pub fn url(&self) -> &str {
        &self.urls[0]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
