//! `tollgate check`: decisions, by a rules file in this process or by a server that runs.

mod args;
mod local;
mod remote;
mod tally;

pub use args::Args;
pub use local::decide;

use anyhow::Result;

use crate::exit::Exit;
use crate::judge::Judge;
use crate::output::Output;
use crate::request::OwnedRequest;

/// Decides and prints.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let request = args.request.over(OwnedRequest::default());
    let tally = match &args.judge.judge()? {
        Judge::Rules(file) => local::run(args, file, &request, out)?,
        Judge::Server(server) => remote::run(args, server, &request, out)?,
    };
    if request.peek && !args.json {
        out.line("only asked: nothing was charged")?;
    }
    if args.repeat > 1 && !args.json {
        out.line(&format!("\n{} requests: {} allowed, {} denied", args.repeat, tally.allowed, tally.denied))?;
    }
    Ok(Exit::from_success(tally.denied == 0))
}
