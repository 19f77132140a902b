//! `tollgate rules get ID`

use anyhow::Result;
use serde_json::Value;
use tollgate_core::Time;

use crate::admin::{ScopeReadArgs, print_record, warning_lines};
use crate::document::rule_yaml;
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::{member, mode_words, source_words, timestamp, visible};

/// The rule.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Id of the rule
    #[arg(value_name = "RULE_ID")]
    rule_id: String,
    #[command(flatten)]
    read: ScopeReadArgs,
}

const HELP: &str = r#"Prints the rule as YAML, with its switch (see `rules mode`) and warnings about it as
comments. The output can be edited and written back; if the rule was changed in the
meantime, nothing is overwritten:
    tollgate rules get orders-per-user > rule.yaml
    tollgate rules update orders-per-user --file rule.yaml

Exit codes:
  0  printed
  1  no such rule
  2  wrong usage, no response, no valid token"#;

/// Prints the rule.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let segments = ["v1", "rules", &args.rule_id];
    print_record(&mut args.read.scope.admin()?, &segments, args.read.json, out, |rule, out| print_yaml(&rule, out))
}

fn print_yaml(rule: &Value, out: &mut Output) -> Result<()> {
    let now = when::now();
    let mut about = format!("# {} in namespace {}", source_words(rule), member(rule, "namespace"));
    for word in ["created", "updated"] {
        // A rule of a file has no dates.
        if let Some(at) = rule.get(format!("{word}_at")).and_then(Value::as_str) {
            about.push_str(&format!(", {word} {}", timestamp(at, now)));
        }
    }
    out.line(&visible(&about))?;
    if let Some(switch) = rule.get("mode_override") {
        // A comment: the switch is not a part of the rule that `rules update` writes.
        out.line(&visible(&format!("# mode: {}{}", mode_words(rule), switch_words(switch, now))))?;
    }
    for warning in warning_lines(rule) {
        out.line(&visible(&format!("# warning: {warning}")))?;
    }
    out.text(&rule_yaml(rule))?;
    if let Some(version) = rule.get("version").filter(|version| !version.is_null()) {
        out.line(&format!("version: {version}  # checked by rules update --file"))?;
    }
    Ok(())
}

/// `, since 2026-11-15T12:00:00Z (2 h ago): too strict`
fn switch_words(switch: &Value, now: Time) -> String {
    let text = |name: &str| switch.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let since = text("since").map(|since| format!(", since {}", timestamp(since, now))).unwrap_or_default();
    let reason = text("reason").map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{since}{reason}")
}
