//! Converts `key=value … [COST [meter] n]` to a request, and a decision to a reply.

use std::borrow::Cow;

use smallvec::SmallVec;
use tollgate_core::{Attribute, Span, Wait};
use tollgate_resp::{Arguments, ReplyWriter, excerpt};
use tollgate_service::{DecidedBy, Decision, Verdict};

use tollgate_service::CheckRequest;
use tollgate_service::render::{Policy, meter_of};

/// Syntax error in a check command: the argument and the reason.
pub struct CheckSyntaxError<'a>(&'a [u8], Cow<'static, str>);

/// Reads the arguments after the command name.
pub fn read_check_request(arguments: Arguments<'_>, peek: bool) -> Result<CheckRequest<'_>, CheckSyntaxError<'_>> {
    let mut attributes: SmallVec<[(&str, &str); 8]> = SmallVec::new(); // bounded by the elements of a command
    let (mut namespace, mut cost) = (None, None);
    let mut costs: SmallVec<[(&str, u64); 2]> = SmallVec::new();
    let mut sent = arguments.from(1);
    while let Some(argument) = sent.next() {
        let error = |what: &'static str| CheckSyntaxError(argument, what.into());
        if argument.eq_ignore_ascii_case(b"COST") {
            let wanted = "should be followed by a whole number, or by a meter and a whole number";
            let next = sent.next().ok_or(error(wanted))?;
            if let Some(number) = digits(next) {
                if cost.replace(number).is_some() {
                    return Err(error(TWICE));
                }
                continue;
            }
            let meter = str::from_utf8(next).map_err(|_| error(wanted))?;
            costs.push((meter, sent.next().and_then(digits).ok_or(error(wanted))?));
            continue;
        }
        let text = str::from_utf8(argument).map_err(|_| error("should be UTF-8"))?;
        let (name, value) = text.split_once('=').ok_or(error("write attributes as name=value"))?;
        let is_known = Attribute::from_name(name).is_some() || name == "namespace";
        if let Some(hint) = if is_known { None } else { misspelt(name, value) } {
            return Err(CheckSyntaxError(name.as_bytes(), hint.into()));
        }
        let is_twice = match name {
            "namespace" => namespace.replace(value).is_some(),
            _ => attributes.iter().any(|(other, _)| *other == name),
        };
        if is_twice {
            return Err(CheckSyntaxError(name.as_bytes(), TWICE.into()));
        }
        if name != "namespace" {
            attributes.push((name, value));
        }
    }
    CheckRequest::named(namespace.unwrap_or_default(), attributes.into_iter(), cost, peek)
        .and_then(|request| if costs.is_empty() { Ok(request) } else { request.with_costs(costs.into_iter()) })
        .map_err(|fault| CheckSyntaxError(b"", format!("{}: {}", fault.field, fault.detail).into()))
}

/// Hint for a misspelt name, which would otherwise become a custom attribute that no rule uses.
fn misspelt(name: &str, value: &str) -> Option<String> {
    if name.eq_ignore_ascii_case("cost") {
        let number = value.parse().unwrap_or(1_u64);
        return Some(format!("is no attribute; write COST {number}"));
    }
    let letters = |text: &'static str| text.bytes().filter(|byte| *byte != b'_');
    let sent = || name.bytes().filter(|byte| !matches!(byte, b'_' | b'-')).map(|byte| byte.to_ascii_lowercase());
    let known = Attribute::ALL.into_iter().map(Attribute::name).chain(["namespace"]);
    let meant = known.filter(|known| *known != name).find(|known| letters(known).eq(sent()))?;
    Some(format!("did you mean `{meant}`?"))
}

const TWICE: &str = "is there twice";

fn digits(sent: &[u8]) -> Option<u64> {
    str::from_utf8(sent).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

impl CheckSyntaxError<'_> {
    /// Writes the error.
    pub fn write(&self, out: &mut ReplyWriter<'_>) {
        let CheckSyntaxError(argument, what) = self;
        match argument.is_empty() {
            true => out.error(&[b"ERR ", what.as_bytes()]),
            false => out.error(&[b"ERR '", excerpt(argument), b"': ", what.as_bytes()]),
        }
    }
}

/// Size of a typical reply.
const REPLY_BYTES: usize = 320;

/// Writes a decision as a map.
pub fn write_decision(decision: &Decision, out: &mut ReplyWriter<'_>) {
    if let Verdict::Invalid(error) = &decision.verdict {
        return out.error(&[b"ERR ", error.to_string().as_bytes()]);
    }
    let rule = decision.deciding().and_then(|ruling| Some((decision.rule(ruling)?, ruling)));
    let policy = rule.and_then(|(rule, ruling)| Policy::of(rule, ruling));
    let is_closed = !decision.is_allowed() && decision.decided_by == DecidedBy::Closed;
    let meter = rule.and_then(|(rule, _)| meter_of(rule));
    let has_rules = decision.rulings().len() > 1;
    out.reserve(REPLY_BYTES);
    out.map(10 + [is_closed, meter.is_some(), has_rules].into_iter().map(usize::from).sum::<usize>());
    out.encoded(b"$7\r\nallowed\r\n");
    out.boolean(decision.is_allowed());
    out.encoded(b"$5\r\nlimit\r\n");
    write_number(out, policy.as_ref().map(|policy| policy.limit));
    out.encoded(b"$9\r\nremaining\r\n");
    match &policy {
        None if decision.decided_by == DecidedBy::Open => out.integer(-1), // fail-open: nothing is counted
        policy => write_number(out, policy.as_ref().map(|policy| policy.remaining)),
    }
    out.encoded(b"$14\r\nretry_after_ms\r\n");
    match decision.retry_after() {
        Wait::None => out.integer(0),
        Wait::For(wait) => out.unsigned(wait.millis_ceil()),
        Wait::Never => out.integer(-1),
    }
    out.encoded(b"$14\r\nreset_after_ms\r\n");
    write_number(out, policy.as_ref().and_then(|policy| policy.reset).map(Span::millis_ceil));
    out.encoded(b"$8\r\ndelay_ms\r\n");
    out.unsigned(decision.delay().millis_ceil());
    out.encoded(b"$4\r\nrule\r\n");
    match &policy {
        Some(policy) => out.bulk(policy.name.as_bytes()),
        None => out.null(),
    }
    out.encoded(b"$4\r\nmode\r\n");
    out.bulk(decision.decided_by.name().as_bytes());
    out.encoded(b"$10\r\ngeneration\r\n");
    out.unsigned(decision.generation());
    out.encoded(b"$6\r\nreason\r\n");
    match decision.reason() {
        Some(reason) => out.bulk(reason.text().as_bytes()),
        None => out.null(),
    }
    if is_closed {
        out.encoded(b"$10\r\nerror_code\r\n");
        out.bulk(b"store_unavailable");
    }
    if let Some(meter) = meter {
        out.encoded(b"$5\r\nmeter\r\n");
        out.bulk(meter.to_string().as_bytes());
    }
    if has_rules {
        out.encoded(b"$5\r\nrules\r\n");
        write_rulings(decision, out);
    }
}

/// What every rule said, where several did: an array of maps.
fn write_rulings(decision: &Decision, out: &mut ReplyWriter<'_>) {
    let known = || decision.rulings().iter().filter_map(|ruling| Some((decision.rule(ruling)?, ruling)));
    out.array(known().count());
    for (rule, ruling) in known() {
        let (policy, meter) = (Policy::of(rule, ruling), meter_of(rule));
        out.map(4 + usize::from(meter.is_some()));
        out.encoded(b"$4\r\nrule\r\n");
        out.bulk(rule.name.as_bytes());
        out.encoded(b"$7\r\nallowed\r\n");
        out.boolean(!ruling.refused());
        out.encoded(b"$5\r\nlimit\r\n");
        write_number(out, policy.as_ref().map(|policy| policy.limit));
        out.encoded(b"$9\r\nremaining\r\n");
        match &policy {
            None if ruling.decided_by == DecidedBy::Open => out.integer(-1),
            policy => write_number(out, policy.as_ref().map(|policy| policy.remaining)),
        }
        if let Some(meter) = meter {
            out.encoded(b"$5\r\nmeter\r\n");
            out.bulk(meter.to_string().as_bytes());
        }
    }
}

fn write_number(out: &mut ReplyWriter<'_>, number: Option<u64>) {
    match number {
        Some(number) => out.unsigned(number),
        None => out.null(),
    }
}
