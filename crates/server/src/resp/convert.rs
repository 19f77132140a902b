//! `key=value … [COST n]` to a request, and a decision to a reply.

use smallvec::SmallVec;
use tollgate_core::{Attribute, Request, Wait};
use tollgate_engine::{Decision, Mode, Verdict};
use tollgate_rules::key::is_attribute;

use super::frame::Arguments;
use super::writer::{Writer, shown};
use crate::answer::Policy;
use crate::api::read::COST_MAX;

/// A request as it was sent.
#[derive(Debug)]
pub struct Asked<'a> {
    request: Request<'a>,
    custom: SmallVec<[(&'a str, &'a str); 4]>,
}

/// What is wrong with one: the argument, and what is wrong with it.
pub type Wrong<'a> = (&'a [u8], &'static str);

impl<'a> Asked<'a> {
    /// Reads the arguments behind the command's name.
    pub fn read(arguments: Arguments<'a>) -> Result<Asked<'a>, Wrong<'a>> {
        let mut asked = Asked { request: Request::new(), custom: SmallVec::new() };
        let mut sent = arguments.from(1);
        let mut named = false;
        let mut cost = None;
        while let Some(argument) = sent.next() {
            if argument.eq_ignore_ascii_case(b"COST") {
                let wanted = sent.next().unwrap_or_default();
                let number = read_cost(wanted).ok_or((wanted, "COST should be a whole number from 0 to 2^53-1"))?;
                match cost.replace(number) {
                    None => continue,
                    Some(_) => return Err((argument, "COST is there twice")),
                }
            }
            let text = str::from_utf8(argument).map_err(|_| (argument, "an attribute should be UTF-8"))?;
            let (name, value) = text.split_once('=').ok_or((argument, "write attributes as name=value"))?;
            asked.put(name, value).map_err(|what| (name.as_bytes(), what))?;
            named |= name != "namespace";
        }
        asked.request.cost = cost.unwrap_or(1);
        match named {
            true => Ok(asked),
            false => Err((b"client_key", "say who asks: client_key, api_key, user_id, ip, ...")),
        }
    }

    /// The request as the engine takes it.
    pub fn request(&self) -> Request<'_> {
        self.request.with_custom(&self.custom)
    }

    fn put(&mut self, name: &'a str, value: &'a str) -> Result<(), &'static str> {
        const TWICE: &str = "is there twice";
        if value.contains('\0') {
            return Err("should not hold NUL");
        }
        match (Attribute::from_name(name), name) {
            (Some(attribute), _) if self.request.get(attribute).is_some() => Err(TWICE),
            (Some(attribute), _) => {
                self.request.set(attribute, value);
                Ok(())
            }
            (None, "namespace") if self.request.namespace != Request::DEFAULT_NAMESPACE => Err(TWICE),
            (None, "namespace") => {
                self.request.namespace = value;
                Ok(())
            }
            (None, "method" | "path") => Err("comes from endpoint: write endpoint=GET /path"),
            (None, name) if !is_attribute(name) => {
                Err("should be a lower-case letter, then up to 63 of a-z, 0-9, _, ., -")
            }
            (None, name) if self.custom.iter().any(|(other, _)| *other == name) => Err(TWICE),
            (None, name) => {
                self.custom.push((name, value)); // as many as a command has elements
                Ok(())
            }
        }
    }
}

fn read_cost(sent: &[u8]) -> Option<u64> {
    let digits = str::from_utf8(sent).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok().filter(|cost| *cost <= COST_MAX)
}

/// Writes what is wrong with a request.
pub fn write_wrong((argument, what): Wrong<'_>, out: &mut Writer<'_>) {
    out.error(&[b"ERR '", shown(argument), b"': ", what.as_bytes()]);
}

/// Writes a decision, pair by pair.
pub fn write_decision(decision: &Decision, out: &mut Writer<'_>) {
    if let Verdict::Invalid(error) = &decision.verdict {
        return out.error(&[b"ERR ", error.to_string().as_bytes()]);
    }
    let rule = decision.deciding().and_then(|ruling| Some((decision.rule(ruling)?, ruling)));
    let policy = rule.and_then(|(rule, ruling)| Policy::of(rule, ruling));
    let name = |out: &mut Writer<'_>, name: &str| out.bulk(name.as_bytes());
    let number = |out: &mut Writer<'_>, number: Option<u64>| match number {
        Some(number) => out.unsigned(number),
        None => out.null(),
    };
    out.map(10);
    name(out, "allowed");
    out.boolean(decision.is_allowed());
    name(out, "limit");
    number(out, policy.as_ref().map(|policy| policy.limit));
    name(out, "remaining");
    match &policy {
        None if decision.mode == Mode::Open => out.integer(-1), // nobody counts
        policy => number(out, policy.as_ref().map(|policy| policy.remaining)),
    }
    name(out, "retry_after_ms");
    match decision.retry_after() {
        Wait::None => out.integer(0),
        Wait::For(wait) => out.unsigned(wait.millis_ceil()),
        Wait::Never => out.integer(-1),
    }
    name(out, "reset_after_ms");
    number(out, policy.as_ref().map(|policy| policy.reset.millis_ceil()));
    name(out, "delay_ms");
    out.unsigned(decision.delay().millis_ceil());
    name(out, "rule");
    match &policy {
        Some(policy) => out.bulk(policy.name.as_bytes()),
        None => out.null(),
    }
    name(out, "mode");
    out.bulk(decision.mode.name().as_bytes());
    name(out, "generation");
    out.unsigned(decision.generation());
    name(out, "reason");
    match decision.reason() {
        Some(reason) => out.bulk(reason.text().as_bytes()),
        None => out.null(),
    }
}
