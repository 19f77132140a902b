//! `tollgate rules update ID`

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use hyper::Method;
use serde_json::Value;

use super::fields::{FieldArgs, without};
use crate::admin::{AdminClient, ChangeArgs, ScopeArgs};
use crate::client::ApiCall;
use crate::document::RuleDocument;
use crate::exit::Exit;
use crate::output::Output;

/// The rule, and its new fields.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Id of the rule
    #[arg(value_name = "RULE_ID")]
    rule_id: String,
    /// Replace the whole rule by this file, YAML or JSON; - reads standard input. Fields that are not in the file are
    /// removed
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Remove a field: limit.burst, match.tier, description
    #[arg(long, value_name = "FIELD", conflicts_with = "file")]
    unset: Vec<String>,
    /// Only if the rule still has this version, as shown by `rules get`
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    fields: FieldArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Flags set only the fields that they name. The update is rejected if the rule was changed
in the meantime.

Examples:
  tollgate rules update orders-per-user --limit 20 --burst 40
  Preview:
    tollgate rules update orders-per-user --limit 20 --dry-run
  Disable it:
    tollgate rules update orders-per-user --disabled
  Apply it to every endpoint:
    tollgate rules update orders-per-user --unset match.endpoint
  With an editor; the file contains the version:
    tollgate rules get orders-per-user > rule.yaml
    tollgate rules update orders-per-user --file rule.yaml

Exit codes:
  0  updated; with --dry-run: valid
  1  rejected: no such rule, invalid values, or the rule was changed in the meantime
  2  wrong usage, no response, no valid token"#;

/// Updates the rule.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let (before, etag) = admin.fetch(&["v1", "rules", &args.rule_id])?;
    let etag = args.version.map_or(etag, |version| format!("\"{version}\""));
    let call = match &args.file {
        Some(path) => replacement(args, path, &admin, &etag)?,
        None => patch(args, &admin, &before)?.if_match(&etag),
    };
    let response = admin.send(&args.change.call(call))?;
    args.change.print_update(("rule", &args.rule_id), &before, &response, out)?;
    Ok(Exit::Ok)
}

fn patch(args: &Args, admin: &AdminClient, before: &Value) -> Result<ApiCall> {
    let slots = before.get("limit").is_some_and(|limit| limit.get("slots").is_some());
    let patch = without(args.fields.fields(slots), &args.unset)?;
    if patch.is_empty() {
        bail!("nothing to change: use --limit 20, --disabled, --unset limit.burst, or --file FILE");
    }
    Ok(admin.call(Method::PATCH, &["v1", "rules", &args.rule_id]).merge_patch(Value::from(patch).to_string()))
}

fn replacement(args: &Args, path: &Path, admin: &AdminClient, etag: &str) -> Result<ApiCall> {
    if !args.fields.fields(false).is_empty() {
        bail!("--file replaces the whole rule: omit the flags, or the file");
    }
    let document = RuleDocument::read(path)?;
    if let Some(id) = document.rule_id.filter(|id| *id != args.rule_id) {
        bail!("{} contains the rule {id}, not {}", path.display(), args.rule_id);
    }
    let etag = match (args.version, document.version) {
        (None, Some(version)) => format!("\"{version}\""),
        _ => etag.to_owned(),
    };
    let call = admin.call(Method::PUT, &["v1", "rules", &args.rule_id]);
    Ok(call.json(Value::from(document.rule).to_string()).if_match(&etag))
}
