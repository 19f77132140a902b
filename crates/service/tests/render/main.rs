//! Real decisions, rendered: whole texts, header fields by an independent parser, and no allocation.

mod allocations;
mod fields;
mod problems;
mod texts;

use tollgate_core::{Attribute, Charge, ManualClock, Receipt, Request, Span, Time};
use tollgate_engine::{Decision, Engine};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_service::Reply;
use tollgate_service::render::{RenderConfig, ResponseOptions, write_decision};
use tollgate_store::{Memory, Outcomes, Store, StoreError, StoreErrorKind, Taken};

const START: Time = Time::from_secs(1_700_000_000);

fn rules(yaml: &str) -> RuleSet {
    let file = tollgate_rules::read("rules.yaml", yaml).unwrap_or_else(|report| panic!("{report}"));
    RuleSet::compile(&[file], &CompileOptions::reproducible()).expect("the rules compile")
}

fn engine(yaml: &str) -> (Engine<Memory>, ManualClock) {
    let clock = ManualClock::at(START);
    (Engine::on_clock(rules(yaml), clock.clone()), clock)
}

/// An unreachable store.
struct Unreachable;

fn unreachable<T>() -> Result<T, StoreError> {
    Err(StoreError { kind: StoreErrorKind::Unavailable, detail: "connection refused".to_owned() })
}

impl Store for Unreachable {
    async fn take(&self, _: &[Charge], _: Span, _: &mut Outcomes) -> Result<Taken, StoreError> {
        unreachable()
    }

    async fn give_back(&self, _: &[Receipt]) -> Result<usize, StoreError> {
        unreachable()
    }

    async fn forget(&self, _: &[Charge]) -> Result<(), StoreError> {
        unreachable()
    }
}

fn user(id: &str) -> Request<'_> {
    Request::new().with(Attribute::UserId, id)
}

fn by_status() -> ResponseOptions {
    ResponseOptions { deny_by_status: Some(true), ..ResponseOptions::default() }
}

fn rendered(decision: &Decision, asking: &ResponseOptions, config: &RenderConfig) -> Reply {
    let mut reply = Reply::default();
    write_decision(decision, asking, config, &mut reply);
    reply
}

fn ascii(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("text")
}

/// The reply as one text: status, fields, a blank line, the body.
fn text(reply: &Reply) -> String {
    let mut text = format!("{}\n", reply.status);
    for (name, value) in reply.fields.iter() {
        text += &format!("{name}: {}\n", ascii(value));
    }
    text + "\n" + ascii(&reply.body)
}

/// The answer to a decision in all defaults, as one text.
fn told(decision: &Decision) -> String {
    text(&rendered(decision, &ResponseOptions::default(), &RenderConfig::default()))
}

/// The answer object alone, checked to be JSON, in the spelling of the answer.
fn object(decision: &Decision) -> String {
    let reply = rendered(decision, &ResponseOptions::default(), &RenderConfig::default());
    let mut alone = Vec::new();
    tollgate_service::render::write_body(decision, &ResponseOptions::default(), &RenderConfig::default(), &mut alone);
    assert_eq!(alone, reply.body);
    let _: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&reply.body).expect("an object");
    ascii(&reply.body).to_owned()
}
