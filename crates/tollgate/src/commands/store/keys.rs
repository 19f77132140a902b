//! `tollgate store keys`: the buckets of a client in the store, decoded.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value, json};
use tollgate_config::StorePlace;
use tollgate_core::{Charge, Sharing};
use tollgate_ruleset::{Applicability, ClientBuckets};
use tollgate_server::redis_config;
use tollgate_service::explain::{effective_json, key_json, limit_json, why_not};
use tollgate_service::store::{Inspection, inspect};
use tollgate_store_redis::{BucketReader, BucketState, StoredBucket};

use super::access::AccessArgs;
use super::database_overrides::DatabaseOverrideArgs;
use crate::exit::Exit;
use crate::load;
use crate::output::Output;
use crate::request::{AttributeArgs, OwnedRequest};
use crate::when;
use tollgate_terminal::stored_text;

/// The client, the rules, the store.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// URL of the store, as in --store of `tollgate serve`
    #[arg(long, value_name = "URL", env = "TOLLGATE_STORE", hide_env_values = true)]
    store: String,
    /// The rules file of the nodes; - reads standard input
    #[arg(long, value_name = "FILE", env = "TOLLGATE_RULES", hide_env_values = true)]
    rules: PathBuf,
    /// The secret_file of the nodes, if they have one [default: the secret in the store]
    #[arg(long, value_name = "FILE", env = "TOLLGATE_SECRET_FILE", hide_env_values = true)]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    admin: DatabaseOverrideArgs,
    #[command(flatten)]
    access: AccessArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: AttributeArgs,
    /// The namespace of the rules [default: the namespace of the rules file]
    #[arg(long, value_name = "NAME", help_heading = "Request")]
    namespace: Option<String>,
}

const HELP: &str = r#"Computes the key of every bucket that the rules may keep for this client, and shows
its entry in the store: key, time to live and decoded state. Only reads. A rule whose
key needs an attribute that was not given is listed with that attribute; a condition
on an attribute that was not given is assumed to match. Overrides in the rules file
apply; those in the database of the nodes apply if --admin-url (TOLLGATE_URL) names
an admin listener, and are left out if it does not. Rules in the database are not read:
use `tollgate explain`.

Examples:
  The buckets of a client:
    tollgate store keys --client user:42 --store redis://127.0.0.1:6379 \
      --rules rules.yaml
  Including rules that count by endpoint and address:
    tollgate store keys --client user:42 --endpoint "GET /export/users" \
      --ip 192.0.2.1 --store redis://127.0.0.1:6379 --rules rules.yaml
  With the overrides in the database of the nodes (a token of the role operator):
    tollgate store keys --client user:42 --store redis://127.0.0.1:6379 \
      --rules rules.yaml --admin-url http://127.0.0.1:8090
  For nodes with a secret_file:
    tollgate store keys --client user:42 --store redis-cluster://10.0.0.1:6379 \
      --rules rules.yaml --secret-file /etc/tollgate/secret

Exit codes:
  0  printed, even if there are no keys
  2  wrong usage, unreadable rules, no response from the store"#;

/// Prints every rule and its buckets.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let place: StorePlace = args.store.parse().map_err(|fault| anyhow!("--store: {fault}"))?;
    let StorePlace::Shared(url) = place else {
        bail!("--store: buckets in memory are visible to their server only: use `tollgate explain --url URL`")
    };
    if args.client.is_empty() {
        bail!("no client given: name one, such as --client user:42");
    }
    let config = redis_config(&url, &args.access.settings(), "store-keys".to_owned())?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    let Inspection { mut reader, options, other_secret } =
        runtime.block_on(inspect(&config, args.secret_file.as_deref()))?;
    if other_secret {
        out.warning("running nodes use another secret, and so other keys: name their secret_file with --secret-file");
    }
    let loaded = load::rules_with(&args.rules, &options, |file| args.admin.add_to(file))?;
    let request = args.client.apply_to(OwnedRequest { namespace: args.namespace.clone(), ..OwnedRequest::default() });
    let lists = request.lists();
    let asked = request.to_request(&loaded.file.namespace, &lists, None);
    let rules = loaded.set.buckets(&asked, when::now());
    let rules = rules.map_err(|error| anyhow!("the attributes cannot be read: {error}"))?;
    if rules.is_empty() {
        bail!("{} has no rules of namespace {:?}", args.rules.display(), asked.namespace);
    }
    let mut shown = Vec::new();
    for rule in &rules {
        shown.push(Value::from(runtime.block_on(rule_json(rule, &mut reader))?));
    }
    match args.json {
        true => out.json(&json!({ "store": url.to_string(), "rules": shown }))?,
        false => {
            out.line(&format!("{url}"))?;
            shown.iter().try_for_each(|rule| out.text(&format!("\n{}", stored_text(rule, out.palette()))))?;
        }
    }
    Ok(Exit::Ok)
}

/// A rule in the format of `explain`, with its buckets in the store.
async fn rule_json(buckets: &ClientBuckets<'_>, reader: &mut BucketReader) -> Result<Map<String, Value>> {
    let rule = buckets.rule;
    let mut fields = effective_json(rule);
    fields.insert("key".to_owned(), key_json(&buckets.key));
    fields.insert("assumed".to_owned(), json!(buckets.assumed));
    fields.insert("because".to_owned(), without_key(buckets).into());
    let mut stored = Vec::new();
    for charge in buckets.charges.iter().flatten().filter(|charge| charge.sharing != Sharing::Local) {
        let bucket = reader.bucket(charge).await;
        let bucket = bucket.map_err(|problem| anyhow!("{}; {}", problem.what, problem.help))?;
        stored.push(bucket_json(charge, &bucket, reader.is_clustered()));
    }
    if let Ok([charge]) = buckets.charges.as_deref() {
        let limit = rule.spec.limit.as_ref().map(|spec| limit_json(spec, &charge.limit));
        fields.insert("limit".to_owned(), limit.into());
    }
    fields.insert("buckets".to_owned(), stored.into());
    Ok(fields)
}

/// Why a rule has no bucket in the store for this client.
fn without_key(buckets: &ClientBuckets<'_>) -> Option<String> {
    match &buckets.charges {
        Ok(charges) if charges.iter().any(|charge| charge.sharing != Sharing::Local) => None,
        Ok(_) => Some("its consistency is local: every node keeps it in memory".to_owned()),
        Err(Applicability::Unlimited) => Some("it sets no limit for this client".to_owned()),
        Err(Applicability::MissingKey { part }) => Some(format!("its key needs {part}, which was not given")),
        Err(standing) => why_not(standing),
    }
}

fn bucket_json(charge: &Charge, bucket: &StoredBucket, clustered: bool) -> Value {
    let StoredBucket { key, server, now, content } = bucket;
    let state = content.as_ref().and_then(|content| content.state.as_ref());
    let outcome = state.map_or_else(|| charge.limit.unused(*now), |(_, outcome)| *outcome);
    json!({
        "store_key": key.to_string(),
        "slot": clustered.then(|| key.slot()),
        "server": server.to_string(),
        "exists": content.is_some(),
        "ttl_ms": content.as_ref().and_then(|content| content.ttl).map(|ttl| ttl.millis_ceil()),
        "state": state.map(|(state, _)| state_json(state)),
        "limit": outcome.limit,
        "used": outcome.used,
        "remaining": outcome.remaining,
        "reset_after_ms": outcome.reset_after.millis_ceil(),
    })
}

/// The decoded state; times as RFC 3339.
fn state_json(state: &BucketState) -> Value {
    match *state {
        BucketState::Arrival(at) => json!({ "tat": when::text(at) }),
        BucketState::Window { end, count } => json!({ "window_end": when::text(end), "count": count }),
        BucketState::Counter { end, previous, current } => {
            json!({ "window_end": when::text(end), "previous": previous, "current": current })
        }
        BucketState::Quota { end, used, carried } => {
            json!({ "period_end": when::text(end), "used": used, "carried": carried })
        }
        BucketState::Log { entries, oldest, newest } => {
            json!({ "entries": entries, "oldest": oldest.map(when::text), "newest": newest.map(when::text) })
        }
        BucketState::Slots { held, first_expiry, last_expiry } => json!({
            "held": held,
            "first_expiry": first_expiry.map(when::text),
            "last_expiry": last_expiry.map(when::text),
        }),
    }
}
