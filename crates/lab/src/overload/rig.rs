//! A server with a knee behind a gateway, as processes.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use tempfile::TempDir;

use super::OverloadPlan;
use crate::process::{self, Process};

/// How the gateway protects the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shedding {
    Off,
    /// What an upstream gets that asks for protection and says nothing else.
    Default,
}

impl Shedding {
    fn fields(self) -> &'static str {
        match self {
            Shedding::Off => "",
            Shedding::Default => "    concurrency: {}\n    queue: {}\n",
        }
    }
}

/// Refuses nothing: what is refused is shed.
const RULES: &str = "rules:\n  - name: wide\n    key_by: global\n    limit: { requests: 1000000, window: 1s }\n";

/// Both processes; killed when dropped.
pub(super) struct OverloadRig {
    gateway: SocketAddr,
    _processes: [Process; 2],
    _directory: TempDir,
}

impl OverloadRig {
    pub(super) fn start(plan: &OverloadPlan, shedding: Shedding) -> io::Result<OverloadRig> {
        let directory = process::directory();
        let (server, knee) = start(&plan.knee, &directory.path().join("knee.log"), "listening on ", |_| {})?;
        let (rules, routes) = (directory.path().join("rules.yaml"), directory.path().join("routes.yaml"));
        fs::write(&rules, RULES)?;
        fs::write(&routes, routes_file(server, shedding))?;
        let state = directory.path().join("state");
        let (gateway, tollgate) =
            start(&plan.tollgate, &directory.path().join("gateway.log"), "gateway on ", |command| {
                command.env_clear().args(["gateway", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
                command.args(["--db", "off", "--max-connections", "20000", "--max-connections-per-address", "20000"]);
                command.arg("--rules").arg(&rules).arg("--routes").arg(&routes).arg("--state-dir").arg(&state);
            })?;
        Ok(OverloadRig { gateway, _processes: [tollgate, knee], _directory: directory })
    }

    pub(super) fn gateway(&self) -> SocketAddr {
        self.gateway
    }
}

fn routes_file(server: SocketAddr, shedding: Shedding) -> String {
    let protection = shedding.fields();
    format!(
        "upstreams:\n  knee:\n    servers: [\"http://{server}\"]\n{protection}routes:\n  \
         - {{ path: /critical/*, upstream: knee, priority: critical }}\n  \
         - {{ path: /sheddable/*, upstream: knee, priority: sheddable }}\n"
    )
}

/// Starts a program that prints its address after `words`.
fn start(
    program: &Path,
    log: &Path,
    words: &str,
    configure: impl FnOnce(&mut Command),
) -> io::Result<(SocketAddr, Process)> {
    let errors = File::create(log)?;
    let mut process = Process::start(program, |command| {
        configure(command);
        command.stdout(Stdio::piped()).stderr(errors);
    })?;
    let output = process.stdout().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let address = lines.find_map(|line| {
        let rest = line.strip_prefix(words)?.strip_prefix("http://")?;
        rest.split([',', ' ', '/']).next()?.parse().ok()
    });
    match address {
        Some(address) => {
            thread::spawn(move || lines.count()); // nothing else reads the pipe
            Ok((address, process))
        }
        None => {
            let log = fs::read_to_string(log).unwrap_or_default();
            Err(io::Error::other(format!("{} did not start: {log}", program.display())))
        }
    }
}
