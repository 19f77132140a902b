//! `tollgate usage`: what a client has used now.

use anyhow::{Result, anyhow, bail};
use hyper::Method;
use serde_json::Value;

use crate::client::ApiCall;
use crate::decider::RemoteServer;
use crate::exit::Exit;
use crate::output::Output;
use crate::request::{AttributeArgs, OwnedRequest};
use tollgate_terminal::{Palette, TextTable, cell, member, visible};

/// The client and the server.
#[derive(Debug, clap::Args)]
pub struct CurrentUsageArgs {
    #[command(flatten)]
    client: AttributeArgs,
    /// The namespace of the rules
    #[arg(long, value_name = "NAME", default_value = "default", help_heading = "Request")]
    namespace: String,
    /// The data listener of a server: http://HOST:PORT, https://HOST:PORT, unix:/path
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080", help_heading = "Server")]
    url: String,
    /// Present the first token in this file to the server [or env: TOLLGATE_TOKEN]
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    token_file: Option<std::path::PathBuf>,
    /// Trust the authorities in this file (PEM) instead of this machine's
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    ca: Option<std::path::PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The help of `usage`.
pub const HELP: &str = r#"Shows what a client has used of every rule that may apply to it. Nothing is charged.
Conditions on attributes that are not given are assumed to hold, and listed.

Examples:
  tollgate usage --client user:42
  tollgate usage --api-key abc --org acme --url http://10.0.0.1:8080 --json
  What was used in past periods, for billing:
    tollgate usage history --client key:abc --from 2026-11-01T00:00:00Z

Exit codes:
  0  printed
  2  wrong usage, no response, no valid token"#;

/// Prints the usage of every rule.
pub fn run(args: &CurrentUsageArgs, out: &mut Output) -> Result<Exit> {
    if args.client.is_empty() {
        bail!("no client given: name one, such as --client user:42");
    }
    let request = args.client.apply_to(OwnedRequest::default());
    let target = args.url.parse().map_err(|fault| anyhow!("--url: {fault}"))?;
    let mut client = RemoteServer::new(target, args.token_file.clone(), args.ca.clone()).client()?;
    let attributes = request.attributes.iter().map(|(name, value)| (name.as_str(), Some(value.as_str())));
    let call = ApiCall::new(Method::GET, &["v1", "usage"]).query_each(attributes);
    let response = client.send(&call.query("namespace", &args.namespace))?.ok()?;
    match args.json {
        true => out.line(&response.text())?,
        false => out.text(&text(&response.object("rules")?, out.palette()))?,
    }
    Ok(Exit::Ok)
}

fn text(usage: &Value, palette: Palette) -> String {
    let rules = usage.get("rules").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if rules.is_empty() {
        return "no rule has a limit for this client\n".to_owned();
    }
    let headings = ["RULE", "METER", "USED", "LIMIT", "REMAINING", "PERIOD", "ASSUMES"];
    let mut table = TextTable::new(headings, |heading| palette.faint(heading));
    for rule in rules {
        let word = |name: &str| visible(&member(rule, name));
        let period = rule.get("period").map(|period| match member(period, "end").as_str() {
            "" | "null" => "for ever".to_owned(),
            end => format!("until {}", visible(end)),
        });
        let assumed = rule.get("assumed").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let assumed: Vec<String> = assumed.iter().filter_map(Value::as_str).map(visible).collect();
        let limit = match rule.get("granted").and_then(Value::as_u64) {
            Some(granted) => format!("{} ({granted} granted)", word("limit")),
            None => word("limit"),
        };
        let columns = [
            word("rule"),
            word("meter"),
            word("used"),
            limit,
            word("remaining"),
            period.unwrap_or_default(),
            assumed.join(", "),
        ];
        table.row(columns.map(cell));
    }
    table.to_string()
}
