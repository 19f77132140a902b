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

/// Which rule, and what of it.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Its id
    #[arg(value_name = "RULE_ID")]
    rule_id: String,
    /// The whole rule from this file, YAML or JSON; - reads standard input. What it does not say is as if never said
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Take a field away: limit.burst, match.tier, description
    #[arg(long, value_name = "FIELD", conflicts_with = "file")]
    unset: Vec<String>,
    /// Only if it is still this version, as `rules get` told
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    fields: FieldArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Flags change what they name and leave the rest alone. The rule is read, and changed
only if nobody else changed it in between; otherwise nothing happens, and you are
told to look again.

Examples:
  tollgate rules update orders-per-user --limit 20 --burst 40
  What would that change?
    tollgate rules update orders-per-user --limit 20 --dry-run
  Switch it off, and keep it:
    tollgate rules update orders-per-user --disabled
  For every endpoint:
    tollgate rules update orders-per-user --unset match.endpoint
  With an editor; the file remembers which version it was:
    tollgate rules get orders-per-user > rule.yaml
    tollgate rules update orders-per-user --file rule.yaml

Exit codes:
  0  updated; with --dry-run: it would be
  1  refused: there is no such rule, it would not be valid, or somebody else
     changed it
  2  wrong usage, no answer, no valid token"#;

/// Changes it.
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
        bail!("say what to change: --limit 20, --disabled, --unset limit.burst, or --file FILE");
    }
    Ok(admin.call(Method::PATCH, &["v1", "rules", &args.rule_id]).merge_patch(Value::from(patch).to_string()))
}

fn replacement(args: &Args, path: &Path, admin: &AdminClient, etag: &str) -> Result<ApiCall> {
    if !args.fields.fields(false).is_empty() {
        bail!("--file is the whole rule: leave out the flags, or the file");
    }
    let document = RuleDocument::read(path)?;
    if let Some(id) = document.rule_id.filter(|id| *id != args.rule_id) {
        bail!("{} holds the rule {id}, not {}", path.display(), args.rule_id);
    }
    let etag = match (args.version, document.version) {
        (None, Some(version)) => format!("\"{version}\""),
        _ => etag.to_owned(),
    };
    let call = admin.call(Method::PUT, &["v1", "rules", &args.rule_id]);
    Ok(call.json(Value::from(document.rule).to_string()).if_match(&etag))
}
