//! `tollgate top`: what is allowed and refused now, by which rule and whom.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use crate::admin::EveryScopeArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::{Palette, TextTable, cell, grouped, member, timestamp, visible};

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
        let text = overview_text(&response.json()?, out.palette());
        out.text(&format!("{}{text}", if is_live { REDRAW } else { "" }))?;
        out.flush()?;
        if !is_live || out.is_closed() {
            return Ok(Exit::Ok);
        }
        admin.wait(Duration::from_secs(args.interval));
    }
}

fn overview_text(overview: &Value, palette: Palette) -> String {
    let part = |name: &str| overview.get(name).cloned().unwrap_or_default();
    let (rates, totals) = (part("per_second"), part("totals"));
    let number = |of: &Value, name: &str| grouped(of.get(name).and_then(Value::as_u64).unwrap_or_default());
    let at_least = if overview.get("limited_now_is_exact") == Some(&Value::Bool(false)) { "at least " } else { "" };
    let mut text = format!(
        "{} allowed/s  {} denied/s  {} shadow denied/s  {} clients limited now\n",
        palette.good(&member(&rates, "allowed")),
        palette.bad(&member(&rates, "denied")),
        palette.warn(&member(&rates, "shadow_denied")),
        palette.strong(&format!("{at_least}{}", member(overview, "limited_now"))),
    );
    text += &palette.faint(&format!(
        "in {} s: {} allowed, {} denied, {} shadow denied\n",
        member(overview, "window_seconds"),
        number(&totals, "allowed"),
        number(&totals, "denied"),
        number(&totals, "shadow_denied"),
    ));
    for node in list(overview, "nodes").iter().filter(|node| node.get("missing") == Some(&Value::Bool(true))) {
        text += &palette.bad(&format!(
            "node {} does not report, last seen {}\n",
            visible(&member(node, "node")),
            at(node, "seen_at")
        ));
    }
    text += &rules(&list(overview, "top_rules"), palette);
    for (title, name) in [
        ("most denied", "top_denied"),
        ("newly denied", "newly_denied"),
        ("denied in shadow mode", "shadow_denied"),
        ("closest to the limit", "closest"),
    ] {
        text += &clients(title, &list(overview, name), palette);
    }
    text
}

fn rules(rules: &[Value], palette: Palette) -> String {
    let mut table = TextTable::new(["NAMESPACE", "RULE", "ALLOWED", "DENIED", "SHADOW DENIED", "COST"], |heading| {
        palette.faint(heading)
    });
    for rule in rules {
        let word = |name: &str| visible(&member(rule, name));
        table.row(["namespace", "rule", "allowed", "denied", "shadow_denied", "cost"].map(|name| cell(word(name))));
    }
    if rules.is_empty() { String::new() } else { format!("\n{table}") }
}

fn clients(title: &str, clients: &[Value], palette: Palette) -> String {
    if clients.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(["CLIENT", "RULE", "COUNT", "OF LIMIT", "SINCE"], |heading| palette.faint(heading));
    for client in clients {
        let word = |name: &str| visible(&member(client, name));
        let error = client.get("error").and_then(Value::as_u64).unwrap_or_default();
        let count = if error > 0 { format!("{} (-{error})", word("count")) } else { word("count") };
        let share = client.get("share_permille").and_then(Value::as_u64);
        let share = share.map_or_else(|| "-".to_owned(), |share| format!("{} %", share / 10));
        table.row([word("client"), word("rule"), count, share, at(client, "limited_since")].map(cell));
    }
    format!("\n{}\n{table}", palette.strong(title))
}

fn at(of: &Value, name: &str) -> String {
    of.get(name).and_then(Value::as_str).map_or_else(|| "-".to_owned(), |text| timestamp(text, when::now()))
}

fn list(of: &Value, name: &str) -> Vec<Value> {
    of.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
}
