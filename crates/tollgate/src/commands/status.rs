//! `tollgate status`

use anyhow::Result;
use serde_json::Value;

use crate::admin::ServerReadArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{Palette, member, timestamp, visible};
use crate::when;

/// Of which server.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    read: ServerReadArgs,
}

const HELP: &str = r#"Which generation the node decides by, whether its database and its store answer, what
it could not read and left out; and who you are to it.

Examples:
  tollgate status
  Do all nodes serve the same generation?
    for node in a b c; do
      tollgate status --url http://$node:8090 --json | jq .generation
    done

Exit codes:
  0  all is well
  1  something wants looking at: the database or the store is away, rows are
     quarantined, or a rules file could not be loaded
  2  wrong usage, no answer, no valid token"#;

/// Prints it.
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
    let line = |label: &str, said: String| format!("{}  {said}\n", palette.faint(&format!("{label:<10}")));
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
        let said = visible(&format!("{state}, {address}"));
        text.push_str(&line("store", if state == "up" { said } else { palette.bad(&said) }));
    }
    text.push_str(&line("mode", word("mode")));
    for error in file_errors(status) {
        let said = format!(
            "not loaded: {}",
            visible(error.as_str().and_then(|error| error.lines().next()).unwrap_or_default())
        );
        text.push_str(&line("rules file", palette.bad(&said)));
    }
    for row in quarantined(status) {
        let said = format!(
            "{} {} in {}: {}",
            member(row, "kind"),
            member(row, "id"),
            member(row, "namespace"),
            member(row, "reason")
        );
        text.push_str(&line("left out", palette.bad(&said)));
    }
    let you = format!("{} ({}), {}", member(me, "name"), member(me, "token_id"), member(me, "role"));
    text + &line("you", visible(&you))
}
