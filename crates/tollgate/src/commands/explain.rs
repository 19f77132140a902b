//! `tollgate explain`: how each rule evaluates a request, by a rules file or on a running server.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};
use tollgate_core::{Clock, ManualClock, SlotId, Time};
use tollgate_engine::Engine;
use tollgate_service::explain::{ExplainedRequest, effective_json};
use tollgate_store::MonotonicClock;

use crate::commands::check::decide;
use crate::decider::{Decider, DeciderArgs, RemoteServer};
use crate::exit::Exit;
use crate::load;
use crate::output::Output;
use crate::request::{OwnedRequest, RequestArgs};
use crate::when;
use tollgate_terminal::{effective_text, explained_text};

/// The decider, and the request.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    decider: DeciderArgs,
    #[command(flatten)]
    question: ExplainArgs,
}

/// The request to explain.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// The request as JSON, in the format of the HTTP API; flags win over it
    #[arg(value_name = "REQUEST")]
    json_request: Option<String>,
    /// Decide as if N of the same requests had come just before
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    after: u64,
    /// Decide at this time instead of now: RFC 3339, or seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = when::instant_or_seconds)]
    at: Option<Time>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    request: RequestArgs,
}

const HELP: &str = r#"Shows for every rule whether it applies or which condition fails, its key and
bucket, its limit with all defaults, the state of the bucket and the outcome; then
the decision. Nothing is charged. A server explains its current counts, so --at and
--after need --rules. Without --rules and --url the command asks the admin listener,
like the other commands (TOLLGATE_URL, TOLLGATE_TOKEN); it also shows ids and reasons
of overrides. For a server of a fleet, `store` is the key of the bucket in Redis and
its slot in a cluster. Bucket ids of a server depend on its secret, and differ from
those of --rules.

Examples:
  Why does the server deny this request?
    tollgate explain --api-key abc --tier free
  The same, on the data port:
    tollgate explain --url http://127.0.0.1:8080 --api-key abc --tier free
  The same by a rules file, with unused buckets:
    tollgate explain --rules rules.yaml --api-key abc --tier free
  A request in the format of the HTTP API:
    tollgate explain --url http://127.0.0.1:8080 \
      '{"client_key":"user:42","endpoint":"POST /api/x","cost":1}'
  One descriptor, by the rules of --envoy-config, in the JSON of Envoy's service:
    tollgate explain '{"domain":"edge","descriptors":
      [{"entries":[{"key":"path","value":"/api"}]}]}'

Exit codes:
  0  explained, whether allowed or denied
  2  wrong usage, unreadable rules or request, no response from the server"#;

/// Explains a request, or the rules without one.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    match &args.decider.decider_or_admin()? {
        Decider::Rules(file) => by_rules(file, &args.question, out),
        Decider::Server(server) => by_server(server, &args.question, out),
    }
}

impl ExplainArgs {
    fn is_empty(&self) -> bool {
        self.json_request.is_none() && self.request.is_empty()
    }

    /// The request, if it is a message of Envoy's rate limit service.
    fn descriptor(&self) -> Option<&str> {
        let text = self.json_request.as_deref()?;
        serde_json::from_str::<Value>(text).is_ok_and(|value| value.get("descriptors").is_some()).then_some(text)
    }

    fn request(&self) -> Result<OwnedRequest> {
        let request = match &self.json_request {
            Some(text) => OwnedRequest::from_json(text).map_err(|error| unreadable(&error))?,
            None => OwnedRequest::default(),
        };
        Ok(self.request.apply_to(request))
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> anyhow::Error {
    anyhow!("the request cannot be read: {error}")
}

/// Explains a request by a rules file; without a request, the rules.
pub fn by_rules(file: &Path, question: &ExplainArgs, out: &mut Output) -> Result<Exit> {
    let loaded = load::rules(file)?;
    if question.is_empty() {
        let rules: Vec<Value> = loaded.set.rules().iter().map(|rule| effective_json(rule).into()).collect();
        match question.json {
            true => out.json(&json!({ "rules": rules }))?,
            false => rules.iter().try_for_each(|rule| out.text(&effective_text(rule, out.palette())))?,
        }
        return Ok(Exit::Ok);
    }
    if question.descriptor().is_some() {
        bail!("descriptors are explained by a server with --envoy-config: use --url, or the admin listener");
    }
    let request = question.request()?;
    // The clock stands still, so that the displayed state is the state of the decision.
    let clock = ManualClock::at(question.at.unwrap_or_else(|| MonotonicClock::new().now()));
    let engine = Engine::on_clock(loaded.set, clock.clone());
    let lists = request.lists();
    let slot = |number: u64| request.in_flight.then_some(SlotId(u128::from(number)));
    for number in 0..question.after {
        let _ = decide(&engine, &request.to_request(&loaded.file.namespace, &lists, slot(number)))?;
    }
    let asked = request.to_request(&loaded.file.namespace, &lists, slot(question.after));
    let pinned = engine.rules();
    let known = pinned.rules.client_attributes(&asked, clock.now());
    let (before, decision) = (decide(&engine, &asked.peek())?, decide(&engine, &asked)?);
    let case = ExplainedRequest { before, decision, shared: false, known };
    let explanations = pinned.rules.explain(&asked, clock.now()).map_err(|error| unreadable(&error))?;
    let explained = case.json(&explanations, usize::MAX);
    match question.json {
        true => out.json(&explained)?,
        false => out.text(&explained_text(&request.summary(), &explained, out.palette()))?,
    }
    Ok(Exit::Ok)
}

fn by_server(server: &RemoteServer, question: &ExplainArgs, out: &mut Output) -> Result<Exit> {
    if question.at.is_some() || question.after > 0 {
        bail!("--at and --after need --rules: a server explains its current counts");
    }
    if question.is_empty() {
        bail!("no request given: use flags such as --client-key user:42, or JSON");
    }
    // A descriptor of Envoy is read by the server: its entries have an order and any key.
    let (body, summary) = match question.descriptor() {
        Some(message) if question.request.is_empty() => (message.to_owned(), message.to_owned()),
        Some(_) => bail!("a request with descriptors is explained as it stands: leave the flags out"),
        None => {
            let request = question.request()?;
            (request.to_json()?.to_string(), request.summary())
        }
    };
    let response = server.client()?.post(&["v1", "explain"], body)?;
    let explained = response.object("decision")?;
    match question.json {
        true => out.line(&response.text())?,
        false => out.text(&explained_text(&summary, &explained, out.palette()))?,
    }
    Ok(Exit::Ok)
}
