//! Nodes as processes, and their HTTP client.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tollgate_lab::patience;
use tollgate_lab::process::Process;

/// A running node.
pub struct Node {
    pub process: Process,
    /// Data address.
    pub data: String,
    /// Admin address.
    pub admin: String,
    /// Gateway address; empty without one.
    pub gateway: String,
    token: String,
    errors: PathBuf,
}

/// Timeout of a call.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long the database may be late on a busy machine.
const DATABASE_PATIENCE: Duration = Duration::from_secs(60);

/// Numbers calls, for their keys.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Value,
}

/// The state directory of a node, and its arguments.
pub struct Place {
    pub dir: TempDir,
    pub db: String,
    pub arguments: Vec<String>,
}

impl Place {
    /// A state directory with a SQLite database.
    pub fn embedded() -> Place {
        Place { dir: tempfile::tempdir().unwrap(), db: "sqlite".to_owned(), arguments: Vec::new() }
    }

    /// A state directory, and a database elsewhere.
    pub fn on(db: &str) -> Place {
        Place { db: db.to_owned(), ..Place::embedded() }
    }

    pub fn with(mut self, arguments: &[&str]) -> Place {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// Starts a node. The first node on a database creates the token; others receive it.
    pub fn start(&self, token: Option<&str>) -> Node {
        self.try_start(token).unwrap_or_else(|message| panic!("the node did not start: {message}"))
    }

    pub fn try_start(&self, token: Option<&str>) -> Result<Node, String> {
        let errors = self.dir.path().join("log");
        let mut process = Process::start(Path::new(env!("CARGO_BIN_EXE_tollgate")), |command| {
            command.env_clear().args(["serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
            command.arg("--state-dir").arg(self.dir.path()).args(["--db", &self.db]).args(&self.arguments);
            let log = File::options().create(true).append(true).open(&errors).unwrap();
            command.stdout(Stdio::piped()).stderr(log);
        })
        .unwrap();
        let lines = BufReader::new(process.stdout().unwrap()).lines().map_while(Result::ok);
        let message: Vec<String> = lines.take_while(|line| !line.starts_with("try: ")).collect();
        let after = |words: &str| {
            let line = message.iter().find_map(|line| line.strip_prefix(words))?;
            line.split([',', '/', ' ']).find(|part| part.contains(':')).map(str::to_owned)
        };
        let (Some(data), Some(admin)) = (after("listening on http://"), after("admin on http://")) else {
            let log = std::fs::read_to_string(&errors).unwrap_or_default();
            return Err(format!("{}\n{log}", message.join("\n")));
        };
        let gateway = after("gateway on http://").unwrap_or_default();
        // The token file is beside the database, if that is a file elsewhere.
        let beside = self.db.strip_prefix("sqlite:").and_then(|path| Path::new(path).parent());
        let dir = beside.unwrap_or(self.dir.path());
        let own = || std::fs::read_to_string(dir.join("admin-token")).unwrap_or_default();
        if token.is_none() {
            // On a busy machine the database may be late for the start; the token is made when it answers.
            patience::try_until(DATABASE_PATIENCE, || !own().is_empty());
        }
        let token = token.map_or_else(own, str::to_owned).trim().to_owned();
        Ok(Node { process, data, admin, gateway, token, errors })
    }
}

impl Node {
    /// The token of its client.
    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap_or_default()
    }

    /// Calls the admin API as clients do: while the database is late, as on a busy machine, the call is repeated with
    /// the same key, so that nothing is done twice.
    pub fn admin(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let key = format!("call-{}", CALLS.fetch_add(1, Ordering::Relaxed));
        let watch = patience::Watch::start();
        loop {
            let answer = self.admin_once(method, path, &[("Idempotency-Key", &key)], body.clone());
            if answer.status != 503 || watch.elapsed() > DATABASE_PATIENCE {
                return answer;
            }
            patience::pause(Duration::from_millis(50));
        }
    }

    /// Calls the admin API once, whatever it answers.
    pub fn admin_once(&self, method: &str, path: &str, fields: &[(&str, &str)], body: Option<Value>) -> Answer {
        self.try_admin(&self.admin, method, path, fields, body)
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub fn try_admin(
        &self,
        at: &str,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: Option<Value>,
    ) -> std::io::Result<Answer> {
        let authorization = format!("Bearer {}", self.token);
        let mut fields = fields.to_vec();
        fields.push(("Authorization", &authorization));
        let text = body.map(|body| body.to_string());
        call(at, method, path, &fields, text.as_deref())
    }

    /// Asks for a decision.
    pub fn check(&self, request: Value) -> Answer {
        let text = request.to_string();
        call(&self.data, "POST", "/v1/check", &[], Some(&text)).unwrap_or_else(|error| panic!("check: {error}"))
    }

    /// The limit that a request of `user` to `path` meets; `None` if no rule applies.
    pub fn limit(&self, path: &str) -> Option<u64> {
        let answer = self.check(json!({"client_key": "user:1", "endpoint": path, "cost": 0}));
        answer.body["rule"].as_str()?;
        answer.body["limit"].as_u64()
    }

    /// The status of the node.
    pub fn status(&self) -> Value {
        self.admin("GET", "/v1/status", None).body
    }

    /// Creates a rule.
    pub fn make(&self, rule_id: &str, path: &str, limit: u64) -> Answer {
        self.admin("POST", "/v1/rules", Some(rule(rule_id, path, limit)))
    }

    /// Waits until the node serves a limit, and returns the elapsed time.
    pub fn serves(&self, path: &str, limit: u64, within: Duration) -> Duration {
        let what = format!("{limit} for {path}; log:\n{}", self.log());
        patience::until(&what, within, || self.limit(path) == Some(limit))
    }
}

/// A rule, in full form.
pub fn rule(rule_id: &str, path: &str, limit: u64) -> Value {
    json!({
        "rule_id": rule_id,
        "match": {"endpoint": path},
        "key_by": "client_key",
        "limit": {"requests": limit, "window": "1h", "algorithm": "fixed_window"},
    })
}

/// One HTTP call on a new connection.
pub fn call(
    at: &str,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
    body: Option<&str>,
) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n");
    if let Some(body) = body {
        let kind = if body.starts_with(['{', '[']) { "application/json" } else { "application/yaml" };
        text += &format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
    }
    fields.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
    text += "\r\n";
    stream.write_all(text.as_bytes())?;
    stream.write_all(body.unwrap_or_default().as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let answer = String::from_utf8_lossy(&bytes);
    let broken = || std::io::Error::other(format!("no answer: {answer:?}"));
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(broken)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
    let body = serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()));
    Ok(Answer { status, head: head.to_owned(), body })
}
