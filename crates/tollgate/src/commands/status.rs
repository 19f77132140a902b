//! `tollgate status`

use anyhow::Result;
use serde_json::Value;

use crate::admin::ServerReadArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::{Palette, member, timestamp, visible};

/// The server.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    read: ServerReadArgs,
}

const HELP: &str = r#"Shows the generation that the node serves, the state of its database and store, rows
and files that it could not read, and the name and role of your token.

Examples:
  tollgate status
  Compare the generations of all nodes:
    for node in a b c; do
      tollgate status --url http://$node:8090 --json | jq .generation
    done

Exit codes:
  0  healthy
  1  attention needed: the database or the store is unavailable, rows are
     quarantined, or a rules file could not be loaded
  2  wrong usage, no response, no valid token"#;

/// Prints the state.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.read.server.admin()?;
    let call = admin.get(&["v1", "status"]);
    let response = admin.send(&call)?;
    let status = response.json()?;
    let exit = Exit::from_success(is_well(&status));
    if args.read.json {
        out.line(&response.text())?;
        return Ok(exit);
    }
    let call = admin.get(&["v1", "whoami"]);
    let me = admin.send(&call)?.json()?;
    out.text(&text(&status, &me, out.palette()))?;
    Ok(exit)
}

fn is_well(status: &Value) -> bool {
    let store_is_up = store(status).iter().all(|server| member(server, "state") == "up");
    quarantined(status).is_empty() && file_errors(status).is_empty() && store_is_up && database(status) != "away"
}

fn store(status: &Value) -> &[Value] {
    status.get("store").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn file_errors(status: &Value) -> &[Value] {
    status.get("file_errors").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn database(status: &Value) -> &str {
    status.pointer("/database/state").and_then(Value::as_str).unwrap_or("?")
}

fn quarantined(status: &Value) -> &[Value] {
    status.get("quarantined").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text(status: &Value, me: &Value, palette: Palette) -> String {
    let line = |label: &str, value: String| format!("{}  {value}\n", palette.faint(&format!("{label:<10}")));
    let word = |name: &str| visible(&member(status, name));
    let mut text = line("node", word("node"));
    let serving = match member(status, "serving") == member(status, "generation") {
        true => String::new(),
        false => format!(" (decisions say {})", word("serving")),
    };
    text.push_str(&line("generation", format!("{}{serving}", word("generation"))));
    let error = status.pointer("/database/error").and_then(Value::as_str).map(|error| format!(": {error}"));
    let database = match database(status) {
        "away" => palette.bad(&format!("away{}", error.unwrap_or_default())),
        state => visible(state),
    };
    let read =
        status.get("refreshed_at").and_then(Value::as_str).map(|at| format!(", read {}", timestamp(at, when::now())));
    text.push_str(&line("database", format!("{database}{}", visible(&read.unwrap_or_default()))));
    for server in store(status) {
        let (state, address) = (member(server, "state"), member(server, "address"));
        let value = visible(&format!("{state}, {address}"));
        text.push_str(&line("store", if state == "up" { value } else { palette.bad(&value) }));
    }
    text.push_str(&line("mode", word("mode")));
    for error in file_errors(status) {
        let value = format!(
            "not loaded: {}",
            visible(error.as_str().and_then(|error| error.lines().next()).unwrap_or_default())
        );
        text.push_str(&line("rules file", palette.bad(&value)));
    }
    for row in quarantined(status) {
        let value = format!(
            "{} {} in {}: {}",
            member(row, "kind"),
            member(row, "id"),
            member(row, "namespace"),
            member(row, "reason")
        );
        text.push_str(&line("left out", palette.bad(&value)));
    }
    let you = format!("{} ({}), {}", member(me, "name"), member(me, "token_id"), member(me, "role"));
    text + &line("you", visible(&you))
}
