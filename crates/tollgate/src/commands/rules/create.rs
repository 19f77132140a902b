//! `tollgate rules create`

use std::path::PathBuf;

use anyhow::{Result, bail};
use hyper::Method;
use serde_json::Value;

use super::fields::FieldArgs;
use crate::admin::{ChangeArgs, ScopeArgs, idempotency_key};
use crate::document::RuleDocument;
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{limit_words, match_words, member, visible};

/// What the rule shall be.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Its id, which answers and metrics show; without one the server makes one up
    #[arg(long, value_name = "RULE_ID")]
    id: Option<String>,
    /// Read the rule from this file, YAML or JSON; - reads standard input; flags win over it
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    fields: FieldArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"The rule is in force on every node within two seconds. A connection that breaks is
tried once more, under the same idempotency key: one command makes one rule.

Examples:
  Ten orders a second for every user of the free tier:
    tollgate rules create --id orders-per-user --endpoint "POST /api/orders" \
      --tier free --key-by user_id --limit 10 --window 1s
  Watch first what it would deny (later: rules update ID --mode enforce):
    tollgate rules create --id searches --endpoint "GET /api/search" \
      --key-by api_key --limit 100 --window 1m --mode shadow
  Is it right? Change nothing:
    tollgate rules create --file rule.yaml --dry-run
  All that a rule can say, from a file, as it stands under `rules:`
    tollgate rules create --file - <<'END'
    name: exports
    match: { endpoint: "GET /export/*" }
    key_by: [api_key, endpoint]
    limit: { requests: 6, window: 1m, algorithm: sliding_window_log }
    END

Exit codes:
  0  created; with --dry-run: it would be
  1  refused: it is not valid, or there is one already
  2  wrong usage, no answer, no valid token"#;

/// Makes it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut rule = args.fields.fields(false);
    if let Some(path) = &args.file {
        let document = RuleDocument::read(path)?;
        let mut whole = document.rule;
        whole.extend(document.rule_id.map(|id| ("rule_id".to_owned(), id.into())));
        merge(&mut whole, rule);
        rule = whole;
    } else if rule.is_empty() {
        bail!("say what the rule shall be: --limit 10 --window 1s, or --file FILE");
    }
    rule.extend(args.id.as_deref().map(|id| ("rule_id".to_owned(), id.into())));
    let mut admin = args.scope.admin()?;
    let call = args.change.call(admin.call(Method::POST, &["v1", "rules"]));
    let call = call.json(Value::from(rule).to_string()).idempotency_key(&idempotency_key()?);
    let response = admin.send_once(&call)?;
    args.change.print(&response, out, |response, palette| {
        let rule = response.json()?;
        let id = palette.strong(&member(&rule, "rule_id"));
        let about = visible(&format!("{} for {}", limit_words(&rule), match_words(&rule)));
        Ok(format!("created rule {id}: {about} (version {})", member(&rule, "version")))
    })?;
    Ok(Exit::Ok)
}

/// What flags say wins over what the file says, field by field.
fn merge(into: &mut serde_json::Map<String, Value>, from: serde_json::Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (Some(Value::Object(inner)), Value::Object(more)) => merge(inner, more),
            (_, value) => {
                into.insert(name, value);
            }
        }
    }
}
