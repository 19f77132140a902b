//! `tollgate why`: why a request was decided as it was.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::admin::EveryScopeArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_core::Span;
use tollgate_terminal::{Palette, TextTable, cell, human_duration, member, timestamp, visible};

/// Which decision.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The id of the decision: the header field X-Decision-Id, `decision_id` in logs and refusals
    #[arg(value_name = "ID", required_unless_present = "client")]
    id: Option<String>,
    /// The last decisions about this client instead: its key, or the digest that is shown of it
    #[arg(long, value_name = "KEY", conflicts_with = "id")]
    client: Option<String>,
    /// Only those that this rule took part in
    #[arg(long, value_name = "RULE_ID", conflicts_with = "id")]
    rule: Option<String>,
    /// Print at most N decisions
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    limit: u64,
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: EveryScopeArgs,
}

const HELP: &str = r#"Shows which rule decided, by which limit, what was in use at that moment, since when the
client is refused, and when it may return. A node keeps its last decisions in memory; all
of them are in its decision log.

Examples:
  tollgate why 3a309775852f7d68
  tollgate why --client user:42

Exit codes:
  0  found
  1  the node has no such decision (any more)
  2  wrong usage, no response, no valid token"#;

/// Prints the decision, or the last ones about a client.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = match (&args.id, &args.client) {
        (Some(id), _) => admin.get(&["v1", "decisions", id]),
        (None, Some(client)) => admin
            .get(&["v1", "decisions"])
            .query("client", client)
            .query_some("rule", args.rule.as_deref())
            .query("limit", &args.limit.to_string()),
        (None, None) => bail!("name a decision, or a client with --client"),
    };
    let response = admin.send(&call)?;
    let found = response.json()?;
    let decisions = found.get("decisions").and_then(Value::as_array);
    let exit = Exit::from_success(decisions.is_none_or(|decisions| !decisions.is_empty()));
    match (args.json, decisions) {
        (true, _) => out.line(&response.text())?,
        (false, None) => out.text(&decision_text(&found, out.palette()))?,
        (false, Some(decisions)) => out.text(&decisions_text(decisions, out.palette()))?,
    }
    Ok(exit)
}

/// The latest refusal at length, then all of them as a table.
fn decisions_text(decisions: &[Value], palette: Palette) -> String {
    if decisions.is_empty() {
        return "this node has no recent decision about that client\n".to_owned();
    }
    let mut text = String::new();
    if let Some(refused) = decisions.iter().find(|own| own.get("allowed") == Some(&Value::Bool(false))) {
        text = decision_text(refused, palette) + "\n";
    }
    text + &table(decisions, palette)
}

/// Decisions, one per line.
pub fn table(decisions: &[Value], palette: Palette) -> String {
    let mut table =
        TextTable::new(["AT", "DECISION", "CLIENT", "RULE", "OUTCOME", "USED", "LIMIT", "RETRY AFTER"], |heading| {
            palette.faint(heading)
        });
    decisions.iter().for_each(|decision| table.row(row(decision)));
    table.to_string()
}

/// The cells of one decision.
pub fn row(decision: &Value) -> [(String, String); 8] {
    let word = |name: &str| match decision.get(name) {
        None | Some(Value::Null) => "-".to_owned(),
        Some(_) => visible(&member(decision, name)),
    };
    let at = decision.get("at").and_then(Value::as_str).unwrap_or_default();
    [
        timestamp(at, when::now()),
        word("decision_id"),
        word("client"),
        word("rule"),
        outcome(decision).to_owned(),
        word("used"),
        word("capacity"),
        retry(decision),
    ]
    .map(cell)
}

fn outcome(decision: &Value) -> &'static str {
    let is = |name: &str| decision.get(name) == Some(&Value::Bool(true));
    match (is("allowed"), is("shadow_denied")) {
        (true, true) => "allowed (shadow denied)",
        (true, false) => "allowed",
        (false, _) => "denied",
    }
}

fn retry(decision: &Value) -> String {
    match decision.get("retry_after_ms") {
        Some(Value::Number(number)) if number.as_u64() == Some(0) => "-".to_owned(),
        Some(Value::Number(number)) => human_duration(Span::from_millis(number.as_u64().unwrap_or_default())),
        _ => "never".to_owned(),
    }
}

/// One decision at length.
fn decision_text(decision: &Value, palette: Palette) -> String {
    let word = |name: &str| visible(&member(decision, name));
    let has = |name: &str| decision.get(name).is_some_and(|value| !value.is_null());
    let time = |name: &str| timestamp(decision.get(name).and_then(Value::as_str).unwrap_or_default(), when::now());
    let line = |label: &str, value: String| format!("{}  {value}\n", palette.faint(&format!("{label:<8}")));
    let is_denied = decision.get("allowed") == Some(&Value::Bool(false));
    let by = if has("rule") { format!(" by {}", palette.strong(&word("rule"))) } else { String::new() };
    let verdict = if is_denied { palette.bad(outcome(decision)) } else { palette.good(outcome(decision)) };
    let mut text = format!("{verdict}{by}, {}\n\n", time("at"));
    text += &line("decision", word("decision_id"));
    text += &line("client", format!("{} in namespace {}", word("client"), word("namespace")));
    if has("limit") {
        let window = decision.get("window_ms").and_then(Value::as_u64);
        let per =
            window.map(|millis| format!(" per {}", human_duration(Span::from_millis(millis)))).unwrap_or_default();
        let own = match decision.get("override") == Some(&Value::Bool(true)) {
            true => format!(", by an override: the rule itself says {}", word("rule_limit")),
            false => String::new(),
        };
        text += &line("limit", format!("{}{per}{own}", word("limit")));
        text += &line("used", format!("{} of {}, asked for {}", word("used"), word("capacity"), word("cost")));
    }
    if has("limited_since") {
        text += &line("refused", format!("since {}", time("limited_since")));
    }
    if is_denied {
        let ends = if has("ends_at") { format!(", at {}", time("ends_at")) } else { String::new() };
        text += &line("retry", format!("after {}{ends}", retry(decision)));
    }
    if has("plan") {
        text += &line("plan", word("plan"));
    }
    text += &line(
        "decided",
        format!("by {}, rules generation {}, node {}", word("mode"), word("generation"), word("node")),
    );
    text + &rules_text(decision, palette)
}

/// The other rules that applied.
fn rules_text(decision: &Value, palette: Palette) -> String {
    let rules = decision.get("rules").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if rules.len() < 2 {
        return String::new();
    }
    let mut table = TextTable::new(["RULE", "OUTCOME", "USED", "LIMIT", "REMAINING", "RETRY AFTER"], |heading| {
        palette.faint(heading)
    });
    for rule in rules {
        let word = |name: &str| visible(&member(rule, name));
        let shadow = if rule.get("shadow") == Some(&Value::Bool(true)) { " (shadow)" } else { "" };
        let outcome = format!("{}{shadow}", outcome(rule));
        table.row([word("rule"), outcome, word("used"), word("capacity"), word("remaining"), retry(rule)].map(cell));
    }
    format!("\n{table}")
}
