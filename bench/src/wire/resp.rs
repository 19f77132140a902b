//! RESP: the servers, and the targets of Tollgate.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use tollgate_load::LoadRequest;

use super::{Mode, RULES, Race, speed};
use crate::cores::Cores;
use crate::report::{BenchReport, Bound};
use crate::servers::lineup::Lineup;
use crate::servers::peers::{THROTTLECRAB_ROOM, tollgate};
use crate::servers::prepare::on_path;
use crate::servers::server::{Ready, free_address};

/// The floor.
pub const ECHO: &str = "tokio echo (floor)";
const TOLLGATE: &str = "Tollgate, CL.THROTTLE";
const TOLLGATE_CHECK: &str = "Tollgate, TG.CHECK";
const THROTTLECRAB: &str = "throttlecrab-server, THROTTLE";
const REDIS: &str = "redis-server, GET";
const REDIS_CELL: &str = "redis-cell, CL.THROTTLE";

pub const INTRODUCTION: &str = "50 connections. The echo reads commands as we do and answers five fixed numbers; a read of a \
                                key in redis-server is there for orientation.";

const COMMAND: &str = "CL.THROTTLE {key} 1000000 1000000 60";
const CHECK: &str = "TG.CHECK user_id={key}";

const ALONE: Mode = Mode { name: "RESP, not pipelined", connections: 50, pipeline: 1 };
const BY_16: Mode = Mode { name: "RESP, pipelined by 16", connections: 50, pipeline: 16 };
const BY_64: Mode = Mode { name: "RESP, pipelined by 64", connections: 50, pipeline: 64 };

/// Starts all servers that are available.
pub fn start<'a>(cores: &'a Cores, tollgate: Option<&Path>) -> anyhow::Result<Lineup<'a>> {
    let mut lineup = Lineup::new(cores)?;
    let echo = lineup.programs.build("tollgate-bench", "resp_echo")?;
    let server = lineup.server(ECHO, Command::new(echo), Ready::Says)?;
    lineup.join(ECHO, &server, &format!("redis://{}", server.address()), LoadRequest::command(COMMAND))?;
    let ours = lineup.programs.tollgate(tollgate).and_then(|program| start_tollgate(&mut lineup, &program));
    lineup.excuse("Tollgate", ours);
    lineup.attempt(&[
        (THROTTLECRAB, start_throttlecrab),
        (REDIS, |lineup| start_redis(lineup, REDIS, "GET {key}", None)),
        (REDIS_CELL, |lineup| start_redis(lineup, REDIS_CELL, COMMAND, Some("libredis_cell.so"))),
    ]);
    Ok(lineup)
}

/// Races them, and compares Tollgate with its targets.
pub fn run(race: &Race<'_>, report: &mut BenchReport) {
    let [alone, by_16, by_64] = [ALONE, BY_16, BY_64].map(|mode| race.peak(mode, report));
    let half = race.half(ALONE, &[TOLLGATE], &alone, report);
    race.cost("RESP: CPU per check, of the echo", 1.25, TOLLGATE, &alone, report);
    speed("RESP pipelined by 16: throughput, of the echo", 0.5, (TOLLGATE, ECHO), &by_16, report);
    if by_64.has(TOLLGATE) && by_16.has(TOLLGATE) {
        let rate = |standings: &crate::servers::round::ServerStandings| standings.sample(TOLLGATE, |round| round.rate);
        let more = rate(&by_64).over(&rate(&by_16));
        report.ratio("RESP pipelined by 64: throughput, of that by 16", Bound::AtLeast(1.0), &more);
    }
    for (mode, standings) in [(ALONE, &alone), (BY_16, &by_16), (BY_64, &by_64)] {
        speed(
            &format!("{}: throughput, of {THROTTLECRAB}", mode.name),
            1.0,
            (TOLLGATE, THROTTLECRAB),
            standings,
            report,
        );
    }
    race.tail("RESP: p99.9 at half of the peak, of the echo", TOLLGATE, &half, report);
}

fn start_tollgate(lineup: &mut Lineup<'_>, program: &Path) -> anyhow::Result<()> {
    let (rules, address) = (lineup.write("rules.yaml", RULES)?, free_address()?);
    let mut command = tollgate(program, &rules);
    command.args(["--resp", &address.to_string()]);
    let server = lineup.server("Tollgate", command, Ready::Listens(address))?;
    for (name, command, cost) in [(TOLLGATE, COMMAND, " 400000"), (TOLLGATE_CHECK, CHECK, " COST 400000")] {
        let proof = LoadRequest::command(&[command, cost].concat());
        lineup.join_proven(name, &server, &format!("redis://{address}"), LoadRequest::command(command), &proof)?;
    }
    Ok(())
}

fn start_throttlecrab(lineup: &mut Lineup<'_>) -> anyhow::Result<()> {
    let address = free_address()?;
    let mut command = Command::new(lineup.programs.throttlecrab()?);
    command.args(["--redis", "--redis-host", "127.0.0.1", "--redis-port", &address.port().to_string()]);
    command.args(THROTTLECRAB_ROOM);
    let server = lineup.server(THROTTLECRAB, command, Ready::Listens(address))?;
    let request = "THROTTLE {key} 1000000 1000000 60";
    let proof = LoadRequest::command(&[request, " 400000"].concat());
    lineup
        .join_proven(THROTTLECRAB, &server, &format!("redis://{address}"), LoadRequest::command(request), &proof)
        .map(drop)
}

fn start_redis(lineup: &mut Lineup<'_>, name: &'static str, request: &str, module: Option<&str>) -> anyhow::Result<()> {
    let mut command = redis(lineup)?;
    let address = free_address()?;
    command.args(["--port", &address.port().to_string()]);
    if let Some(module) = module {
        let file = lineup.programs.found(module).with_context(|| format!("{module} is not in TOLLGATE_PEERS"))?;
        command.arg("--loadmodule").arg(file);
    }
    let server = lineup.server(name, command, Ready::Listens(address))?;
    let target = format!("redis://{address}");
    match module {
        Some(_) => {
            let proof = LoadRequest::command(&[request, " 400000"].concat());
            lineup.join_proven(name, &server, &target, LoadRequest::command(request), &proof).map(drop)
        }
        None => lineup.join(name, &server, &target, LoadRequest::command(request)).map(drop), // limits nothing
    }
}

/// redis-server without persistence.
pub fn redis(lineup: &Lineup<'_>) -> anyhow::Result<Command> {
    let program: PathBuf = on_path("redis-server").context("not on PATH; script/setup installs it")?;
    let mut command = Command::new(program);
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]).arg(lineup.folder());
    Ok(command)
}
