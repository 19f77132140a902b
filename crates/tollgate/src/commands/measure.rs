//! `tollgate measure`: finds out how much a server carries, and proposes limits.

use std::time::Duration;

use anyhow::Result;
use tollgate_load::{KneeCriteria, LimitProposal, LoadRequest, RampPlan, Target, TargetProtocol, ramp};
use tollgate_terminal::{proposal_yaml, ramp_json, ramp_text, step_words, visible};

use crate::commands::bench::{header, time};
use crate::exit::Exit;
use crate::output::Output;

/// The server, the bounds and the request.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The server: http://HOST:PORT/PATH; for a Unix domain socket, http://unix:/SOCKET:/PATH
    url: String,
    /// Print one JSON document at the end
    #[arg(long)]
    json: bool,
    /// How far the proposed rate stays below the knee
    #[arg(long, value_name = "PERCENT", default_value = "20%", value_parser = percent)]
    headroom: u32,

    /// Requests per second of the first step
    #[arg(long, value_name = "PER_SECOND", default_value_t = 20.0, help_heading = "Bounds")]
    from: f64,
    /// Most requests per second
    #[arg(long, value_name = "PER_SECOND", default_value_t = 10_000.0, help_heading = "Bounds")]
    to: f64,
    /// Most requests in all
    #[arg(long, value_name = "N", default_value_t = 500_000, help_heading = "Bounds")]
    requests: u64,
    /// Longest time in all
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = time, help_heading = "Bounds")]
    time: Duration,
    /// Most connections, and so most requests in flight
    #[arg(long, value_name = "N", default_value_t = 500, help_heading = "Bounds")]
    connections: usize,

    /// Measured time of one step, after a second that does not count
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = time, help_heading = "Steps")]
    step: Duration,
    /// How many times slower than without load the 99th percentile may be
    #[arg(long, value_name = "TIMES", default_value_t = 3.0, help_heading = "Steps")]
    slowdown: f64,
    /// Longest time for a reply
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = time, help_heading = "Steps")]
    timeout: Duration,

    /// GET, POST ...
    #[arg(long, value_name = "METHOD", default_value = "GET", help_heading = "Request")]
    method: String,
    /// Additional header; it may contain {key}, as may the URL: another key in every request
    #[arg(long, value_name = "NAME:VALUE", value_parser = header, help_heading = "Request")]
    header: Vec<(String, String)>,
    /// The body; it may contain {key}
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, help_heading = "Request")]
    body: String,
}

const HELP: &str = r#"Offers more and more requests per second, in steps, and stops when the server no longer
keeps up: its knee. Requests are due at fixed times, whatever the server does (an open
loop), and latency counts from then. This is real load: measure a server without real
users, with a request that may be repeated a hundred thousand times.

A server keeps up with a rate while 95 % of it are answered in time, at most 1 % fail,
and the 99th percentile is at most 3 times that without load (or 20 ms above it). Rates
rise by half until a step fails; then the interval is halved until it is closer than
6 %. A slow step is repeated once, because a busy machine has pauses too. After a failed
step, the next one waits until the server is fast again. So no step offers more than
one and a half times what was carried before. The bounds hold in any case.

The plot has one row per step: ○ the median, ● the 99th percentile, on a logarithmic
scale. The proposal is two files for `tollgate gateway`: a rate below the knee by the
headroom, and an adaptive limit that starts with what was in flight at the knee.

Measure from another machine than the server's, if you can: on one machine both
compete for its cores, and the knee is that of both together.

Examples:
  An API on this machine:
    tollgate measure http://127.0.0.1:3000/orders/1
  Carefully: at most 200 requests per second and 20,000 in all:
    tollgate measure http://10.0.0.7:3000/ --to 200 --requests 20000
  A request with a body and a token, another object each time:
    tollgate measure http://127.0.0.1:3000/search --method POST \
      --header 'Content-Type: application/json' --header 'Authorization: Bearer …' \
      --body '{"q":"{key}"}'
  The knee, for a script:
    tollgate measure http://127.0.0.1:3000/ --json | jq .knee.offered

Exit codes:
  0  the knee was found
  1  no knee: it kept up with everything that was allowed, or with nothing
  2  wrong usage, or the server does not accept connections"#;

fn percent(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').and_then(|digits| digits.parse().ok()).filter(|percent| *percent <= 90);
    number.ok_or_else(|| "write a percentage from 0% to 90%, such as 20%".to_owned())
}

/// Measures, and prints table, plot and proposal.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let target = Target::parse(&args.url)?;
    if target.protocol() != TargetProtocol::Http {
        anyhow::bail!("{:?}: only http:// can be measured; tollgate bench knows other protocols", args.url);
    }
    let request = args
        .header
        .iter()
        .fold(LoadRequest::new(&args.method, target.path()).body(&args.body), |request, (name, value)| {
            request.header(name, value)
        });
    let plan = args.plan();
    out.progress(&format!("{}: measuring the first step", args.url));
    let report = ramp(&target, &request, &plan, &mut |step| out.progress(&step_words(step)));
    out.progress("");
    let report = report?;
    let proposal = report.knee().map(|knee| LimitProposal::new(knee, f64::from(args.headroom) / 100.0));
    match args.json {
        true => out.json(&ramp_json(&report, proposal.as_ref()))?,
        false => {
            out.text(&format!("{}\n\n{}", visible(&args.url), ramp_text(&report, out.palette())))?;
            if let Some(proposal) = &proposal {
                let server = format!("http://{}", target.address());
                out.text(&format!("\n{}", proposal_yaml(proposal, &server, args.headroom)))?;
            }
        }
    }
    Ok(Exit::from_success(report.knee().is_some()))
}

impl Args {
    fn plan(&self) -> RampPlan {
        RampPlan {
            first: self.from,
            rate_max: self.to,
            step: self.step,
            connections: self.connections,
            timeout: self.timeout,
            requests_max: self.requests,
            time_max: self.time,
            criteria: KneeCriteria { slowdown: self.slowdown, ..KneeCriteria::default() },
            ..RampPlan::default()
        }
    }
}
