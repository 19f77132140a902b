//! `tollgate plans diff A B`

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::list::rules;
use super::source::PlanSourceArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::render::changes_text;

/// The plans to compare.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The plan to start from
    #[arg(value_name = "FROM")]
    from: String,
    /// The plan to compare with it
    #[arg(value_name = "TO")]
    to: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: PlanSourceArgs,
}

const HELP: &str = r#"What changes for a client that goes from one plan to another: `+` is a rule that only the
second plan has, `-` one that only the first has, `~` one that differs. Usage of a rule
that both have is kept, unless its algorithm, window or meter differs.

Example:
  tollgate plans diff free pro --rules examples/plans.yaml

Exit codes, as of diff(1):
  0  no difference
  1  there are differences
  2  no such plan, wrong usage, an unreadable or invalid file"#;

/// Prints the differences.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let [from, to] = args.source.named([&args.from, &args.to])?;
    let changes = changes(&from, &to);
    match (args.json, changes.is_empty()) {
        (true, _) => out.json(&json!({ "changes": changes }))?,
        (false, true) => out.line("no difference")?,
        (false, false) => out.text(&changes_text(&changes, out.palette()))?,
    }
    Ok(Exit::from_success(changes.is_empty()))
}

/// The rules that differ, in the order of the second plan, and those that it lacks.
fn changes(from: &Value, to: &Value) -> Vec<Value> {
    let named = |plan: &Value, name: &str| rules(plan).iter().find(|rule| name_of(rule) == name).map(content);
    let change = |name: &str, before: Option<Value>, after: Option<Value>| {
        (before != after).then(|| json!({ "kind": "rule", "id": name, "before": before, "after": after }))
    };
    let in_second = rules(to).iter().map(|rule| change(name_of(rule), named(from, name_of(rule)), Some(content(rule))));
    let lacking = rules(from).iter().filter(|rule| named(to, name_of(rule)).is_none());
    in_second.chain(lacking.map(|rule| change(name_of(rule), Some(content(rule)), None))).flatten().collect()
}

fn name_of(rule: &Value) -> &str {
    rule.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// A rule without the plan that contains it.
fn content(rule: &Value) -> Value {
    let mut fields: Map<String, Value> = rule.as_object().cloned().unwrap_or_default();
    fields.retain(|name, _| !["plan", "rule_id"].contains(&name.as_str()));
    fields.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rules_that_differ_are_listed() {
        let plan = |rules: Value| json!({ "rules": rules });
        let free =
            plan(json!([{ "name": "a", "plan": "free", "limit": 1 }, { "name": "b", "limit": 1 }, { "name": "d" }]));
        let pro =
            plan(json!([{ "name": "a", "plan": "pro", "limit": 1 }, { "name": "b", "limit": 2 }, { "name": "c" }]));
        let ids = |changes: Vec<Value>| changes.iter().map(|change| change["id"].clone()).collect::<Vec<_>>();
        assert_eq!(ids(changes(&free, &pro)), ["b", "c", "d"]);
        assert_eq!(ids(changes(&free, &free)), [Value::Null; 0]);
    }
}
