//! `tollgate rules mode RULE_ID [MODE]`

use anyhow::Result;
use hyper::Method;
use serde_json::{Value, json};

use crate::admin::{ChangeArgs, ScopeArgs};
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::{member, mode_words, source_words};

/// The rule, and its mode.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Id of the rule
    #[arg(value_name = "RULE_ID")]
    rule_id: String,
    /// The mode to use instead of the rule's own; without it, the current mode is printed
    #[arg(value_name = "MODE", value_parser = ["enforce", "shadow", "off"], conflicts_with = "reset")]
    mode: Option<String>,
    /// Remove the switch: the rule's own mode applies again
    #[arg(long)]
    reset: bool,
    /// Reason for the switch
    #[arg(long, value_name = "TEXT", requires = "mode")]
    reason: Option<String>,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Switches the mode of one rule of the database, of a rules file or of an Envoy file,
without changing the rule. The switch survives reloads and restarts, is recorded in
the audit log, and is shown with the rule until it is removed.

Examples:
  tollgate rules mode orders-per-user shadow --reason "too strict, ticket 4711"
  tollgate rules mode orders-per-user
  tollgate rules mode orders-per-user --reset

Exit codes:
  0  done
  1  rejected: no such rule, or no switch to remove
  2  wrong usage, no response, no valid token"#;

/// Switches the rule, or prints its mode.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let id = args.rule_id.as_str();
    let call = match (&args.mode, args.reset) {
        (Some(mode), _) => {
            let mut body = json!({ "mode": mode });
            if let (Some(reason), Value::Object(members)) = (&args.reason, &mut body) {
                members.insert("reason".to_owned(), reason.as_str().into());
            }
            admin.call(Method::PUT, &["v1", "rules", id, "mode"]).json(body.to_string())
        }
        (None, true) => admin.call(Method::DELETE, &["v1", "rules", id, "mode"]),
        (None, false) => {
            let call = admin.get(&["v1", "rules", id]);
            let rule = admin.send(&call)?.json()?;
            match args.change.json {
                true => out.line(&rule.get("mode_override").cloned().unwrap_or_default().to_string())?,
                false => {
                    out.line(&format!("{}: {}, {}", member(&rule, "rule_id"), mode_words(&rule), source_words(&rule)))?
                }
            }
            return Ok(Exit::Ok);
        }
    };
    let response = admin.send(&args.change.call(call))?;
    args.change.print(&response, out, |_, _| {
        let mode = args.mode.as_deref().unwrap_or("its own mode");
        Ok(format!("rule {id} is switched to {mode}"))
    })?;
    Ok(Exit::Ok)
}
