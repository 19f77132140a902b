//! `tollgate rules explain`: every rule, and what it makes of a request.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use serde_json::{Map, Value, json};
use tollgate_core::{Clock, ManualClock, Request, SlotId, Time};
use tollgate_engine::{Decision, Engine, Ruling};
use tollgate_rules::ruleset::{Explanation, Rule, RuleId, Standing};
use tollgate_store::{Memory, MonotonicClock};

use crate::commands::check::{decide, time};
use crate::exit::Exit;
use crate::load;
use crate::output::Output;
use crate::render::{
    Palette, decision_json, effective_json, effective_text, for_people, headline, limit_json, limit_text, visible,
};
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
    let case = Case::of(&engine, &asked)?;
    let pinned = engine.rules();
    let explanations =
        pinned.rules.explain(&asked, clock.now()).map_err(|error| anyhow!("the request cannot be read: {error}"))?;
    match args.json {
        true => out.json(&case.json(&explanations))?,
        false => out.text(&case.text(&request, &explanations, out.palette()))?,
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

/// One request at one moment: how its buckets stood, and what was decided.
struct Case {
    before: Decision,
    decision: Decision,
}

impl Case {
    fn of(engine: &Engine<Memory>, request: &Request<'_>) -> Result<Case> {
        let before = decide(engine, &request.peek())?;
        Ok(Case { before, decision: decide(engine, request)? })
    }

    fn text(&self, request: &OwnedRequest, explanations: &[Explanation<'_>], palette: Palette) -> String {
        let mut text = format!("{}  {}\n\n", palette.faint("request "), visible(&request.summary()));
        for explanation in explanations {
            text.push_str(&self.rule_text(explanation, palette));
            text.push('\n');
        }
        text + &format!("{}  {}\n", palette.faint("decision"), headline(&self.decision, palette))
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
        match ruling(&self.before, rule).and_then(|ruling| ruling.outcome) {
            Some(outcome) if outcome.used == 0 => format!("unused, {} left", outcome.remaining),
            Some(outcome) => format!("{} of {} used", outcome.used, outcome.limit),
            None => "keeps none".to_owned(),
        }
    }

    fn outcome(&self, rule: RuleId) -> String {
        let Some(outcome) = ruling(&self.decision, rule).and_then(|ruling| ruling.outcome) else {
            return "allowed without limit".to_owned();
        };
        let verdict = match (outcome.allowed, outcome.wait.span()) {
            (true, _) => "allowed".to_owned(),
            (false, Some(wait)) => format!("denied, retry after {}", for_people(wait)),
            (false, None) => "denied, can never pass".to_owned(),
        };
        format!("{verdict}, {} left, as new after {}", outcome.remaining, for_people(outcome.reset_after))
    }

    fn json(&self, explanations: &[Explanation<'_>]) -> Value {
        let rules: Vec<Value> = explanations.iter().map(|explanation| self.rule_json(explanation).into()).collect();
        json!({ "decision": decision_json(&self.decision), "rules": rules })
    }

    fn rule_json(&self, explanation: &Explanation<'_>) -> Map<String, Value> {
        let rule = explanation.rule;
        let mut fields = effective_json(rule);
        let key = explanation.key.iter().map(|part| json!({ "attribute": part.attribute, "value": part.value }));
        fields.insert("key".to_owned(), key.collect());
        fields.insert("overrides".to_owned(), explanation.overrides.into());
        let applies = matches!(explanation.standing, Standing::Applies { .. } | Standing::Unlimited);
        fields.insert("applies".to_owned(), applies.into());
        fields.insert("because".to_owned(), why_not(&explanation.standing).into());
        if let Standing::Applies { charge, overridden } = &explanation.standing {
            fields.insert("bucket".to_owned(), charge.bucket.to_string().into());
            fields.insert("overridden".to_owned(), (*overridden).into());
            fields.insert("charged".to_owned(), charge.ask.cost().into());
            let limit = rule.spec.limit.as_ref().map(|spec| limit_json(spec, &charge.limit));
            fields.insert("limit".to_owned(), limit.into());
            let used = ruling(&self.before, rule.id).and_then(|ruling| ruling.outcome).map(|outcome| outcome.used);
            fields.insert("used_before".to_owned(), used.into());
        }
        fields
    }
}

fn ruling(decision: &Decision, rule: RuleId) -> Option<&Ruling> {
    decision.rulings().iter().find(|ruling| ruling.rule == rule)
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

/// Why a rule does not apply.
fn why_not(standing: &Standing<'_>) -> Option<String> {
    Some(match standing {
        Standing::Applies { .. } | Standing::Unlimited => return None,
        Standing::Off => "its mode is off".to_owned(),
        Standing::NoMatch { attribute, wanted, found: Some(found) } => {
            format!("{attribute} should be {wanted}, is {found}")
        }
        Standing::NoMatch { attribute, wanted, found: None } => {
            format!("{attribute} should be {wanted}, the request has none")
        }
        Standing::Exempted { by } => format!("{} exempts the request from it", by.name),
        Standing::MissingKey { part } => format!("it counts by {part}, the request has none"),
        Standing::NoSlot => "it counts requests in flight, and this one holds no slot (see --in-flight)".to_owned(),
    })
}
