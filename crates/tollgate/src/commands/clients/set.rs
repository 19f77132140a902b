//! `tollgate clients set KEY`

use anyhow::{Result, bail};
use hyper::{Method, StatusCode};
use serde_json::{Map, Value};

use crate::admin::{ChangeArgs, ScopeArgs, idempotency_key};
use crate::client::ApiProblem;
use crate::exit::Exit;
use crate::output::Output;

/// The client, and the fields to set.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Client key: user:42, key:acme-prod
    #[arg(value_name = "CLIENT_KEY")]
    client_key: String,
    /// Tier; an empty value removes it
    #[arg(long, value_name = "TIER")]
    tier: Option<String>,
    /// Plan, from now on; an empty value removes it
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,
    /// Organisation; an empty value removes it
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// Custom attribute; NAME= removes it
    #[arg(long, value_name = "NAME=VALUE", value_parser = attribute)]
    attribute: Vec<(String, String)>,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Sets only the given fields.

Examples:
  tollgate clients set key:acme-prod --tier paid --org acme
  tollgate clients set key:acme-prod --plan pro --attribute region=eu

Exit codes:
  0  done; with --dry-run: valid
  1  rejected: invalid values, or the client was changed in the meantime
  2  wrong usage, no response, no valid token"#;

/// Creates or updates the client.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let fields = args.fields();
    if fields.is_empty() {
        bail!("nothing to set: use --tier paid, --plan pro, --org acme or --attribute region=eu");
    }
    update(&args.client_key, |_| fields.clone(), &args.scope, &args.change, out)
}

/// Creates or updates a client: `fields` are a merge patch for its present state.
pub fn update(
    client_key: &str,
    fields: impl Fn(&Value) -> Map<String, Value>,
    scope: &ScopeArgs,
    change: &ChangeArgs,
    out: &mut Output,
) -> Result<Exit> {
    let mut admin = scope.admin()?;
    let path = ["v1", "clients", client_key];
    let (before, call) = match admin.fetch(&path) {
        Ok((before, etag)) => {
            let call = admin.call(Method::PATCH, &path).if_match(&etag);
            let patch = Value::from(fields(&before)).to_string();
            (before, call.merge_patch(patch))
        }
        Err(error) if is_absent(&error) => {
            let call = admin.call(Method::POST, &["v1", "clients"]).idempotency_key(&idempotency_key()?);
            (Value::Null, call.json(without_blanks(client_key, fields(&Value::Null)).to_string()))
        }
        Err(error) => return Err(error),
    };
    let call = change.call(call);
    let response = if before.is_null() { admin.send_once(&call)? } else { admin.send(&call)? };
    change.print_update(("client", client_key), &before, &response, out)?;
    Ok(Exit::Ok)
}

impl Args {
    /// A merge patch of the given fields; empty values remove fields.
    fn fields(&self) -> Map<String, Value> {
        let value = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
        let mut fields = Map::new();
        fields.extend(self.tier.as_deref().map(|tier| ("tier".to_owned(), value(tier))));
        fields.extend(self.plan.as_deref().map(|plan| ("plan".to_owned(), value(plan))));
        fields.extend(self.org.as_deref().map(|org| ("organisation".to_owned(), value(org))));
        if !self.attribute.is_empty() {
            let attributes: Map<_, _> = self.attribute.iter().map(|(name, text)| (name.clone(), value(text))).collect();
            fields.insert("attributes".to_owned(), attributes.into());
        }
        fields
    }
}

fn is_absent(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ApiProblem>().is_some_and(|problem| problem.status == StatusCode::NOT_FOUND)
}

/// The fields of a new client, without those to remove.
fn without_blanks(client_key: &str, mut fields: Map<String, Value>) -> Value {
    if let Some(Value::Object(attributes)) = fields.get_mut("attributes") {
        attributes.retain(|_, value| !value.is_null());
    }
    fields.retain(|_, value| !value.is_null());
    fields.insert("client_key".to_owned(), client_key.into());
    fields.into()
}

fn attribute(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE, such as region=eu".to_owned()),
    }
}
