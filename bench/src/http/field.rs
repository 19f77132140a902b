//! The servers, and the request for each.

use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use anyhow::Context as _;
use tollgate_load::LoadRequest;

use super::rules::{self, RuleLimit};
use crate::cores::Cores;
use crate::servers::lineup::{Candidate, Lineup};
use crate::servers::peers::{THROTTLECRAB_ROOM, limitador, limitador_check, tollgate};
use crate::servers::prepare::on_path;
use crate::servers::server::{PeerServer, Ready, free_address};

/// The floor.
pub const ECHO: &str = "hyper echo (floor)";
/// One rule that matches, everything allowed: the subject of the targets.
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
/// If it is installed.
pub const LIMITADOR: &str = "limitador-server";
/// If it is installed.
pub const NGINX: &str = "nginx limit_req";

/// Checks in a batch.
const BATCH_CHECKS: usize = 100;
/// Keys, unless a scenario says otherwise.
const KEYS: u64 = 100_000;

/// Starts all servers that are available; Tollgate from this program if one is given.
pub fn start<'a>(cores: &'a Cores, tollgate: Option<&Path>) -> anyhow::Result<Lineup<'a>> {
    let mut lineup = Lineup::new(cores)?;
    let echo = lineup.programs.build("tollgate-bench", "hyper_echo")?;
    let server = lineup.server(ECHO, Command::new(echo), Ready::Says)?;
    join(&mut lineup, ECHO, &server, LoadRequest::post("/v1/check").body(rules::CHECK))?;
    let ours = lineup.programs.tollgate(tollgate).and_then(|program| start_tollgate(&mut lineup, &program));
    lineup.excuse("Tollgate", ours);
    lineup.attempt(&[(THROTTLECRAB, start_throttlecrab), (LIMITADOR, start_limitador), (NGINX, start_nginx)]);
    Ok(lineup)
}

/// Adds a candidate over HTTP.
fn join<'a>(
    lineup: &'a mut Lineup<'_>,
    name: &'static str,
    server: &Rc<PeerServer>,
    request: LoadRequest,
) -> anyhow::Result<&'a mut Candidate> {
    lineup.join(name, server, &format!("http://{}/", server.address()), request)
}

fn start_tollgate(lineup: &mut Lineup<'_>, program: &Path) -> anyhow::Result<()> {
    let scenarios = [
        (TOLLGATE, 1, RuleLimit::Ample, KEYS),
        (DENIED, 1, RuleLimit::One, KEYS),
        (SMALL, 10, RuleLimit::Ample, 1_000),
        (LARGE, 10_000, RuleLimit::Ample, 1_000_000),
    ];
    for (name, number, limit, keys) in scenarios {
        let rules = lineup.write(&format!("{number}-{limit:?}.yaml"), &rules::file(number, limit))?;
        let command = tollgate(program, &rules);
        let server = lineup.server(name, command, Ready::Says)?;
        join(lineup, name, &server, LoadRequest::post("/v1/check").body(rules::CHECK))?.keys = keys;
        if name == TOLLGATE {
            let request = LoadRequest::post("/v1/check/batch").body(rules::batch(BATCH_CHECKS));
            join(lineup, BATCH, &server, request)?.checks = BATCH_CHECKS;
        }
    }
    Ok(())
}

fn start_throttlecrab(lineup: &mut Lineup<'_>) -> anyhow::Result<()> {
    let address = free_address()?;
    let mut command = Command::new(lineup.programs.throttlecrab()?);
    command.args(["--http", "--http-host", "127.0.0.1", "--http-port", &address.port().to_string()]);
    command.args(THROTTLECRAB_ROOM);
    let server = lineup.server(THROTTLECRAB, command, Ready::Listens(address))?;
    let body = r#"{"key":"{key}","max_burst":1000000,"count_per_period":1000000,"period":60}"#;
    join(lineup, THROTTLECRAB, &server, LoadRequest::post("/throttle").body(body)).map(drop)
}

fn start_limitador(lineup: &mut Lineup<'_>) -> anyhow::Result<()> {
    let (http, rls) = (free_address()?, free_address()?);
    let command = limitador(lineup, http, rls, &["memory"])?;
    let server = lineup.server(LIMITADOR, command, Ready::Listens(http))?;
    join(lineup, LIMITADOR, &server, limitador_check()).map(drop)
}

fn start_nginx(lineup: &mut Lineup<'_>) -> anyhow::Result<()> {
    let program = on_path("nginx").context("not on PATH")?;
    let (address, folder) = (free_address()?, lineup.folder().display());
    // An empty picture, because `return` would answer before the limit is looked at.
    let config = format!(
        "daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log crit;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n  access_log off; keepalive_requests 1000000000; client_body_temp_path {folder};\n  \
         limit_req_zone $http_x_key zone=keys:64m rate=1000000r/s;\n  \
         server {{ listen {address}; location / {{ limit_req zone=keys burst=1000000 nodelay; \
         limit_req_status 429; empty_gif; }} }}\n}}\n"
    );
    let config = lineup.write("nginx.conf", &config)?;
    let mut command = Command::new(program);
    // One process, so that its CPU time is in one place.
    command.arg("-p").arg(lineup.folder()).arg("-c").arg(config).args(["-g", "master_process off;"]);
    let server = lineup.server(NGINX, command, Ready::Listens(address))?;
    join(lineup, NGINX, &server, LoadRequest::get("/").header("x-key", "{key}")).map(drop)
}
