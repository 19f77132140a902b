//! `tollgate check`: decides requests, by a rules file in this process or on a running server.

mod args;
mod decision_counts;
mod local;
mod remote;

pub use args::Args;
pub use local::decide;

use anyhow::Result;

use crate::decider::Decider;
use crate::exit::Exit;
use crate::output::Output;
use crate::request::OwnedRequest;

/// Decides the requests and prints the decisions.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let request = args.request.apply_to(OwnedRequest::default());
    let counts = match &args.decider.decider()? {
        Decider::Rules(file) => local::run(args, file, &request, out)?,
        Decider::Server(server) => remote::run(args, server, &request, out)?,
    };
    if request.peek && !args.json {
        out.line("peek: nothing was charged")?;
    }
    if args.repeat > 1 && !args.json {
        out.line(&format!("\n{} requests: {} allowed, {} denied", args.repeat, counts.allowed, counts.denied))?;
    }
    Ok(Exit::from_success(counts.denied == 0))
}
