//! A language's `conformance` program: an application, or a client that answers lines.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::languages;
use crate::limiter::{Limiter, TOKEN};

const PATIENCE: Duration = Duration::from_secs(60);

/// Settings of a program, as a scenario has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramSettings {
    pub variables: Vec<(&'static str, String)>,
    pub token: Option<String>,
}

/// Killed when dropped; a program ends by itself when its input ends, so it does not outlive a test that was killed.
pub struct Program {
    pub settings: ProgramSettings,
    child: Child,
    input: ChildStdin,
    output: Receiver<String>,
    /// Where an application listens.
    address: Option<SocketAddr>,
}

impl Program {
    pub fn start(language: &str, arguments: &[&str], settings: &ProgramSettings, limiter: &Limiter) -> Program {
        let mut command = languages::program(language);
        command.args(arguments).env("TOLLGATE_URL", limiter.link.url()).env("CONFORMANCE_TIMEOUT_MS", "10000");
        match (&settings.token, limiter.settings.wants_token) {
            (Some(token), _) => command.env("TOLLGATE_DATA_TOKEN", token),
            (None, true) => command.env("TOLLGATE_DATA_TOKEN", TOKEN),
            (None, false) => command.env_remove("TOLLGATE_DATA_TOKEN"),
        };
        command.envs(settings.variables.iter().map(|(name, value)| (name, value)));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, output) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line).ok()));
        let input = child.stdin.take().unwrap();
        let mut program = Program { settings: settings.clone(), child, input, output, address: None };
        program.address = (arguments[0] == "app").then(|| program.announced());
        program
    }

    /// Where an application listens.
    pub fn address(&self) -> SocketAddr {
        self.address.expect("an application")
    }

    fn announced(&self) -> SocketAddr {
        let line = self.line().unwrap();
        let address = line.strip_prefix("ready http://").and_then(|address| address.trim_end_matches('/').parse().ok());
        address
            .unwrap_or_else(|| panic!("an application prints `ready http://127.0.0.1:PORT`, this one printed {line:?}"))
    }

    /// Sends a line to a client, and returns its answer.
    pub fn ask(&mut self, line: &Value) -> Result<Value, String> {
        writeln!(self.input, "{line}").map_err(|error| format!("the program has ended: {error}"))?;
        let answer = self.line()?;
        serde_json::from_str(&answer).map_err(|error| format!("{error}: {answer}"))
    }

    fn line(&self) -> Result<String, String> {
        self.output
            .recv_timeout(PATIENCE)
            .map_err(|_| "the program printed nothing, or has ended: see its standard error".to_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
