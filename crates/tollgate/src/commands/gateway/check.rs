//! `tollgate gateway check FILE...`

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;
use tollgate_gateway::spec::{self, UnreachableRoute};
use tollgate_rules::position::SourcePosition;
use tollgate_rules::problem::Problem;

use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::{colour_report, count, problem_json, visible};

/// The files.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Routes files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print a list of {file, line, column, severity, code, field, message, help}
    #[arg(long)]
    json: bool,
}

const HELP: &str = r#"Reports all mistakes of all files at once, with their place, and warns of routes that
no request reaches. Nothing is connected to.

Example:
  tollgate gateway check routes.yaml

Exit codes:
  0  no mistakes
  1  mistakes found
  2  wrong usage, or an unreadable file"#;

/// Checks the files.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut exit = Exit::Ok;
    let mut list: Vec<Value> = Vec::new();
    for path in &args.files {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
        match spec::read_bytes(&name, &bytes) {
            Ok(spec) if args.json => {
                list.extend(spec.unreachable().iter().map(|route| problem_json(&name, &unreachable(route))));
            }
            Ok(spec) => {
                let (routes, upstreams) = (count(spec.routes.len(), "route"), count(spec.upstreams.len(), "upstream"));
                out.line(&format!("{}: {}, {routes}, {upstreams}", visible(&name), out.palette().good("ok")))?;
                for route in spec.unreachable() {
                    out.line(&format!("  {}: {}", out.palette().warn("warning"), visible(&route.to_string())))?;
                }
            }
            Err(report) => {
                exit = exit.max(Exit::No);
                match args.json {
                    true => list.extend(report.problems.iter().map(|problem| problem_json(&report.file, problem))),
                    false => out.text(&colour_report(&report, out.palette()))?,
                }
            }
        }
    }
    if args.json {
        out.json(&Value::Array(list))?;
    }
    Ok(exit)
}

fn unreachable(route: &UnreachableRoute) -> Problem {
    let field = format!("routes[{}]", route.index);
    Problem::warning("unreachable-route", SourcePosition::default(), field, route.to_string())
        .help("put it before that route, or take it out")
}
