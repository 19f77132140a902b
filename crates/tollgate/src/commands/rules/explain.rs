//! `tollgate rules explain`: every rule, and what it makes of a request.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use serde_json::json;
use tollgate_core::{Clock, ManualClock, SlotId, Time};
use tollgate_engine::Engine;
use tollgate_rules::ruleset::{Explanation, Rule, RuleId, Standing};
use tollgate_server::explain::{Case, effective_json, effective_text, limit_text, ruling, why_not};
use tollgate_store::MonotonicClock;

use crate::commands::check::{decide, time};
use crate::exit::Exit;
use crate::load;
use crate::output::Output;
use crate::render::{Palette, for_people, headline, visible};
use crate::request::{OwnedRequest, RequestArgs};

/// Which rules, which request.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The request as JSON, as the HTTP interface takes it; flags win over it
    #[arg(value_name = "REQUEST")]
    json_request: Option<String>,
    /// The rules file; - reads standard input
    #[arg(long, value_name = "FILE", env = "TOLLGATE_RULES", hide_env_values = true)]
    rules: PathBuf,
    /// As if so many of the same requests had come just before
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    after: u64,
    /// Decide at this time instead of now: RFC 3339, or seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<Time>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    request: RequestArgs,
}

const HELP: &str = r#"Tells of every rule whether it applies or which condition fails, its key and
bucket, its limit with all defaults filled in, the state of the bucket and the
outcome; then the decision. Without a request it prints the effective values of
every rule.

Examples:
  tollgate rules explain --rules rules.yaml
  tollgate rules explain --rules rules.yaml --api-key abc --tier free
  tollgate rules explain --rules rules.yaml \
    '{"client_key":"user:42","endpoint":"POST /api/x","cost":1}'
  When 20 have passed:
    tollgate rules explain --rules rules.yaml --api-key abc --after 20

Exit codes:
  0  explained, whatever the decision
  2  wrong usage, rules that cannot be read, or a request that cannot"#;

/// Explains the request, or the rules themselves.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let loaded = load::rules(&args.rules)?;
    if args.json_request.is_none() && args.request.is_empty() {
        match args.json {
            true => out.json(&json!({ "rules": loaded.set.rules().iter().map(effective_json).collect::<Vec<_>>() }))?,
            false => loaded.set.rules().iter().try_for_each(|rule| out.text(&effective(rule, out.palette())))?,
        }
        return Ok(Exit::Ok);
    }
    let request = match &args.json_request {
        Some(text) => OwnedRequest::from_json(text).map_err(|error| anyhow!("the request cannot be read: {error}"))?,
        None => OwnedRequest::default(),
    };
    let request = args.request.over(request);
    // Time stands still: the state that is shown is the one that was decided on.
    let clock = ManualClock::at(args.at.unwrap_or_else(|| MonotonicClock::new().now()));
    let engine = Engine::on_clock(loaded.set, clock.clone());
    let custom = request.custom();
    let slot = |number: u64| request.in_flight.then_some(SlotId(u128::from(number)));
    for number in 0..args.after {
        let _ = decide(&engine, &request.ask(&loaded.file.namespace, &custom, slot(number)))?;
    }
    let asked = request.ask(&loaded.file.namespace, &custom, slot(args.after));
    let case = Case { before: decide(&engine, &asked.peek())?, decision: decide(&engine, &asked)? };
    let pinned = engine.rules();
    let explanations =
        pinned.rules.explain(&asked, clock.now()).map_err(|error| anyhow!("the request cannot be read: {error}"))?;
    match args.json {
        true => out.json(&case.json(&explanations))?,
        false => out.text(&Told(&case).text(&request, &explanations, out.palette()))?,
    }
    Ok(Exit::Ok)
}

/// The effective values of one rule, for people.
fn effective(rule: &Rule, palette: Palette) -> String {
    let mut text =
        format!("{} {}\n", palette.strong(&rule.name), palette.faint(&format!("(line {})", rule.spec.at.line)));
    for (label, value) in effective_text(rule) {
        text.push_str(&labelled(label, &value, palette));
    }
    text + "\n"
}

fn labelled(label: &str, value: &str, palette: Palette) -> String {
    let value = value.lines().map(visible).collect::<Vec<_>>().join("\n            ");
    format!("  {}  {value}\n", palette.faint(&format!("{label:<8}")))
}

/// The case, for people.
struct Told<'a>(&'a Case);

impl Told<'_> {
    fn text(&self, request: &OwnedRequest, explanations: &[Explanation<'_>], palette: Palette) -> String {
        let mut text = format!("{}  {}\n\n", palette.faint("request "), visible(&request.summary()));
        for explanation in explanations {
            text.push_str(&self.rule_text(explanation, palette));
            text.push('\n');
        }
        text + &format!("{}  {}\n", palette.faint("decision"), headline(&self.0.decision, palette))
    }

    fn rule_text(&self, explanation: &Explanation<'_>, palette: Palette) -> String {
        let rule = explanation.rule;
        let applies = matches!(explanation.standing, Standing::Applies { .. } | Standing::Unlimited);
        let verdict = if applies { palette.good("applies") } else { palette.faint("does not apply") };
        let line = palette.faint(&format!("(line {})", rule.spec.at.line));
        let mut text = format!("{} {line}: {verdict}\n", palette.strong(&rule.name));
        let mut add = |label: &str, value: &str| text.push_str(&labelled(label, value, palette));
        if let Some(why) = why_not(&explanation.standing) {
            add("because", &why);
            return text;
        }
        if let Standing::Applies { charge, overridden } = &explanation.standing {
            let own = if *overridden { " (this client's own)" } else { "" };
            add("key", &key_text(explanation));
            add("bucket", &charge.bucket.to_string());
            add("limit", &format!("{}{own}", limit_text(rule, &charge.limit)));
            add("cost", &charge.ask.cost().to_string());
        }
        let wanted = |label: &str| matches!(label, "policy" | "replaces");
        effective_text(rule).iter().filter(|(label, _)| wanted(label)).for_each(|(label, value)| add(label, value));
        add("state", &self.state(rule.id));
        add("outcome", &self.outcome(rule.id));
        text
    }

    /// How full the bucket was before this request.
    fn state(&self, rule: RuleId) -> String {
        match ruling(&self.0.before, rule).and_then(|ruling| ruling.outcome) {
            Some(outcome) if outcome.used == 0 => format!("unused, {} left", outcome.remaining),
            Some(outcome) => format!("{} of {} used", outcome.used, outcome.limit),
            None => "keeps none".to_owned(),
        }
    }

    fn outcome(&self, rule: RuleId) -> String {
        let Some(outcome) = ruling(&self.0.decision, rule).and_then(|ruling| ruling.outcome) else {
            return "allowed without limit".to_owned();
        };
        let verdict = match (outcome.allowed, outcome.wait.span()) {
            (true, _) => "allowed".to_owned(),
            (false, Some(wait)) => format!("denied, retry after {}", for_people(wait)),
            (false, None) => "denied, can never pass".to_owned(),
        };
        format!("{verdict}, {} left, as new after {}", outcome.remaining, for_people(outcome.reset_after))
    }
}

fn key_text(explanation: &Explanation<'_>) -> String {
    let part = |part: &tollgate_rules::ruleset::KeyPart| match &part.value {
        Some(value) => format!("{}={value}", part.attribute),
        None => format!("{} (absent, shared)", part.attribute),
    };
    match explanation.key.is_empty() {
        true => "global".to_owned(),
        false => explanation.key.iter().map(part).collect::<Vec<_>>().join(", "),
    }
}
