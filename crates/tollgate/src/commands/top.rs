//! `tollgate top`: what is allowed and refused now, by which rule and whom.

use std::time::Duration;

use anyhow::Result;

use crate::admin::EveryScopeArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::overview_text;

/// What is shown, and how often.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Print once, and end; so it is if the output is no terminal
    #[arg(long)]
    once: bool,
    /// Seconds between two pictures
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// What totals cover
    #[arg(long, value_name = "WINDOW", default_value = "5m", value_parser = ["1m", "5m", "15m", "1h"])]
    window: String,
    /// Print the API's JSON once
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: EveryScopeArgs,
}

const HELP: &str = r#"Shows rates, the rules that refuse most, the clients that are refused most, those that
began to be refused last, and those closest to their limit. It is drawn again every two
seconds until it is interrupted.

Examples:
  tollgate top
  tollgate top --once --window 1h
  Clients that are limited at this moment, for a script:
    tollgate top --json | jq .limited_now

Exit codes:
  0  shown
  2  wrong usage, no response, no valid token"#;

/// Takes the cursor to the upper left corner, and erases what is below.
const REDRAW: &str = "\u{1b}[H\u{1b}[J";

/// Shows the traffic.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "traffic", "overview"]).query("window", &args.window);
    loop {
        let response = admin.send(&call)?;
        if args.json {
            out.line(&response.text())?;
            return Ok(Exit::Ok);
        }
        let is_live = out.is_terminal() && !args.once;
        let text = overview_text(&response.json()?, when::now(), out.palette());
        out.text(&format!("{}{text}", if is_live { REDRAW } else { "" }))?;
        out.flush()?;
        if !is_live || out.is_closed() {
            return Ok(Exit::Ok);
        }
        admin.wait(Duration::from_secs(args.interval));
    }
}
