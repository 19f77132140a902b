//! Who is measured, and what each of them is asked.

use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use anyhow::Context as _;
use tempfile::TempDir;
use tollgate_load::{Request, Target};

use super::prepare::{Programs, on_path};
use super::rules::{self, Limit};
use super::server::{Ready, Server, free_address};
use crate::cores::Cores;
use crate::report::progress;

/// The floor.
pub const ECHO: &str = "hyper echo (floor)";
/// One rule that matches, everything allowed: what the targets speak of.
pub const TOLLGATE: &str = "Tollgate";
/// The same, everything denied.
pub const DENIED: &str = "Tollgate, all denied";
/// A hundred checks in a request.
pub const BATCH: &str = "Tollgate, batches of 100";
/// Few rules and keys.
pub const SMALL: &str = "Tollgate, 10 rules, 1 k keys";
/// Many of both.
pub const LARGE: &str = "Tollgate, 10 k rules, 1 M keys";
/// The peer nearest in what it does.
pub const THROTTLECRAB: &str = "throttlecrab-server";
/// If it is there.
pub const LIMITADOR: &str = "limitador-server";
/// If it is there.
pub const NGINX: &str = "nginx limit_req";

/// Checks in a batch.
const BATCH_CHECKS: usize = 100;
/// Keys, unless a scenario says otherwise.
const KEYS: u64 = 100_000;

/// One line of the table: a server and what it is asked.
#[derive(Debug)]
pub struct Candidate {
    /// As the tables have it.
    pub name: &'static str,
    /// Several may ask the same one.
    pub server: Rc<Server>,
    /// The process of a store behind it, whose CPU time is counted apart.
    pub backend: Option<u32>,
    pub target: Target,
    pub request: Request,
    pub keys: u64,
    /// Checks in a request.
    pub checks: usize,
}

/// All who could be started, and why others could not.
#[derive(Debug)]
pub struct Field {
    pub candidates: Vec<Candidate>,
    pub absent: Vec<String>,
    folder: TempDir,
}

impl Field {
    /// Starts everybody who is to be had; of Tollgate, this program if one is given.
    pub fn start(cores: &Cores, tollgate: Option<&Path>) -> anyhow::Result<Field> {
        let programs = Programs::new()?;
        let mut field = Field { candidates: Vec::new(), absent: Vec::new(), folder: tempfile::tempdir()? };
        let echo = programs.build("tollgate-bench", "hyper_echo")?;
        let server = field.server(ECHO, Command::new(echo), Ready::Says, cores)?;
        field.join(ECHO, &server, Request::post("/v1/check").body(rules::CHECK))?;
        let ours = match tollgate {
            Some(program) => Ok(program.to_owned()),
            None => programs.build("tollgate", "tollgate"),
        };
        let ours = ours.and_then(|program| field.tollgate(&program, cores));
        field.excuse("Tollgate", ours);
        let theirs = field.throttlecrab(&programs, cores);
        field.excuse(THROTTLECRAB, theirs);
        let theirs = field.limitador(cores);
        field.excuse(LIMITADOR, theirs);
        let theirs = field.nginx(cores);
        field.excuse(NGINX, theirs);
        Ok(field)
    }

    /// A candidate by name.
    pub fn of(&self, name: &str) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.name == name)
    }

    fn tollgate(&mut self, program: &Path, cores: &Cores) -> anyhow::Result<()> {
        let scenarios = [
            (TOLLGATE, 1, Limit::Ample, KEYS),
            (DENIED, 1, Limit::One, KEYS),
            (SMALL, 10, Limit::Ample, 1_000),
            (LARGE, 10_000, Limit::Ample, 1_000_000),
        ];
        for (name, number, limit, keys) in scenarios {
            let rules = self.write(&format!("{number}-{limit:?}.yaml"), &rules::file(number, limit))?;
            let mut command = Command::new(program);
            command.arg("serve").arg("--rules").arg(rules).args(["--http", "127.0.0.1:0", "--admin", "off"]);
            let server = self.server(name, command, Ready::Says, cores)?;
            self.join(name, &server, Request::post("/v1/check").body(rules::CHECK))?.keys = keys;
            if name == TOLLGATE {
                let request = Request::post("/v1/check/batch").body(&rules::batch(BATCH_CHECKS));
                self.join(BATCH, &server, request)?.checks = BATCH_CHECKS;
            }
        }
        Ok(())
    }

    fn throttlecrab(&mut self, programs: &Programs, cores: &Cores) -> anyhow::Result<()> {
        let address = free_address()?;
        let mut command = Command::new(programs.throttlecrab()?);
        command.args(["--http", "--http-host", "127.0.0.1", "--http-port", &address.port().to_string()]);
        // Room for all keys, as a run would set it; and no line per request.
        command.args(["--store-capacity", "200000", "--log-level", "warn"]);
        let server = self.server(THROTTLECRAB, command, Ready::Listens(address), cores)?;
        let body = r#"{"key":"{key}","max_burst":1000000,"count_per_period":1000000,"period":60}"#;
        self.join(THROTTLECRAB, &server, Request::post("/throttle").body(body)).map(drop)
    }

    fn limitador(&mut self, cores: &Cores) -> anyhow::Result<()> {
        let program = on_path("limitador-server").context("not on PATH")?;
        let limits = "- namespace: bench\n  max_value: 1000000000\n  seconds: 60\n  conditions: []\n  variables: \
                      [\"descriptors[0].user_id\"]\n";
        let limits = self.write("limits.yaml", limits)?;
        let (http, rls) = (free_address()?, free_address()?);
        let mut command = Command::new(program);
        command.args(["--http-ip", "127.0.0.1", "--http-port", &http.port().to_string()]);
        command.args(["--rls-ip", "127.0.0.1", "--rls-port", &rls.port().to_string()]).arg(limits).arg("memory");
        let server = self.server(LIMITADOR, command, Ready::Listens(http), cores)?;
        let body = r#"{"namespace":"bench","values":{"user_id":"{key}"},"delta":1}"#;
        self.join(LIMITADOR, &server, Request::post("/check_and_report").body(body)).map(drop)
    }

    fn nginx(&mut self, cores: &Cores) -> anyhow::Result<()> {
        let program = on_path("nginx").context("not on PATH")?;
        let (address, folder) = (free_address()?, self.folder.path().display());
        // An empty picture, because `return` would answer before the limit is looked at.
        let config = format!(
            "daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log crit;\n\
             events {{ worker_connections 4096; }}\n\
             http {{\n  access_log off; keepalive_requests 1000000000; client_body_temp_path {folder};\n  \
             limit_req_zone $http_x_key zone=keys:64m rate=1000000r/s;\n  \
             server {{ listen {address}; location / {{ limit_req zone=keys burst=1000000 nodelay; \
             limit_req_status 429; empty_gif; }} }}\n}}\n"
        );
        let config = self.write("nginx.conf", &config)?;
        let mut command = Command::new(program);
        // One process, so that its CPU time is in one place.
        command.arg("-p").arg(self.folder.path()).arg("-c").arg(config).args(["-g", "master_process off;"]);
        let server = self.server(NGINX, command, Ready::Listens(address), cores)?;
        self.join(NGINX, &server, Request::get("/").header("x-key", "{key}")).map(drop)
    }

    fn server(&self, name: &str, command: Command, ready: Ready, cores: &Cores) -> anyhow::Result<Rc<Server>> {
        progress(&format!("  starting {name}"));
        let log = self.folder.path().join(format!("{}.log", name.replace([' ', '/'], "-")));
        Ok(Rc::new(Server::start(command, ready, cores, &log)?))
    }

    fn join(&mut self, name: &'static str, server: &Rc<Server>, request: Request) -> anyhow::Result<&mut Candidate> {
        let target = Target::parse(&format!("http://{}/", server.address()))?;
        self.candidates.push(Candidate {
            name,
            server: Rc::clone(server),
            backend: None,
            target,
            request,
            keys: KEYS,
            checks: 1,
        });
        self.candidates.last_mut().context("it was just added")
    }

    fn excuse(&mut self, name: &str, started: anyhow::Result<()>) {
        if let Err(error) = started {
            progress(&format!("  {name}: not measured: {error:#}"));
            self.absent.push(format!("{name} ({error:#})"));
        }
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<std::path::PathBuf> {
        let path = Path::join(self.folder.path(), name);
        std::fs::write(&path, text)?;
        Ok(path)
    }
}
