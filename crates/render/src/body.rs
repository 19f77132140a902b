//! The JSON object of a decision, and how JSON is appended to a buffer.

use std::io::Write as _;

use tollgate_core::{LimitKind, Span, Wait};
use tollgate_engine::{DecidedBy, Decision, Reason, Ruling, Verdict};
use tollgate_rules::MeterSpec;
use tollgate_ruleset::Rule;

use super::retry::RetryHint;
use super::{Detail, Dialect, Policy, RenderInput, meter_of};

/// Appends the object.
#[inline]
pub(super) fn write(input: &RenderInput<'_>, out: &mut Vec<u8>) {
    out.push(b'{');
    write_members(input, Detail::Full, out);
    if input.is_closed {
        out.extend_from_slice(b",\"error_code\":\"store_unavailable\"");
    } else if input.is_shed {
        out.extend_from_slice(b",\"error_code\":\"overload\"");
    }
    write_id(input, out);
    out.push(b'}');
}

/// Appends the id of the decision, if responses name it.
pub(super) fn write_id(input: &RenderInput<'_>, out: &mut Vec<u8>) {
    if input.shows_id {
        out.extend_from_slice(b",\"decision_id\":\"");
        out.extend_from_slice(&input.decision.id().digits());
        out.push(b'"');
    }
}

/// Appends the members of the object, without braces.
pub(super) fn write_members(input: &RenderInput<'_>, detail: Detail, out: &mut Vec<u8>) {
    let RenderInput { decision, policy, .. } = input;
    let allowed = decision.verdict == Verdict::Allow;
    out.extend_from_slice(if allowed { b"\"allowed\":true" } else { b"\"allowed\":false" });
    out.extend_from_slice(b",\"limit\":");
    number_or_null(out, policy.as_ref().map(|policy| policy.limit));
    out.extend_from_slice(b",\"remaining\":");
    write_remaining(policy.as_ref(), decision.decided_by, out);
    out.extend_from_slice(b",\"reset_at\":");
    number_or_null(
        out,
        policy.as_ref().and_then(|policy| policy.reset).map(|reset| decision.wall.after(reset).secs_ceil()),
    );
    write_retry(input, out);
    out.extend_from_slice(b",\"rule\":");
    match policy {
        Some(policy) => string(out, policy.name),
        None => out.extend_from_slice(b"null"),
    }
    if let Some(meter) = input.rule.and_then(meter_of) {
        write_meter(meter, out);
    }
    if detail == Detail::Full {
        out.extend_from_slice(b",\"mode\":\"");
        out.extend_from_slice(decision.decided_by.name().as_bytes());
        out.extend_from_slice(b"\",\"generation\":");
        number(out, decision.generation());
    }
    let delay = decision.delay();
    if !delay.is_zero() {
        out.extend_from_slice(b",\"delay_ms\":");
        number(out, delay.millis_ceil());
    }
    // A step of a reservation may be denied by the limit of a rule that no longer exists: no reason fits.
    if let Some(reason) = decision.reason().filter(|_| allowed) {
        out.extend_from_slice(b",\"reason\":");
        string(out, reason_text(decision.decided_by, reason));
    }
    if let (false, Some(rule), Some(policy)) = (allowed, input.rule, policy) {
        write_violated(rule, policy, out);
    }
    if decision.rulings().len() > 1 && detail == Detail::Full {
        write_rulings(decision, out);
    }
}

/// Failing open, nothing is counted: -1 stands for a number that does not exist.
fn write_remaining(policy: Option<&Policy<'_>>, mode: DecidedBy, out: &mut Vec<u8>) {
    match policy {
        None if mode == DecidedBy::Open => out.extend_from_slice(b"-1"),
        policy => number_or_null(out, policy.map(|policy| policy.remaining)),
    }
}

pub(super) fn write_retry(input: &RenderInput<'_>, out: &mut Vec<u8>) {
    match (input.retry, input.dialect) {
        (RetryHint::Now, Dialect::V1) => out.extend_from_slice(b",\"retry_after\":null,\"retry_after_ms\":null"),
        (RetryHint::Now, Dialect::Alias) => out.extend_from_slice(b",\"retry_after\":0,\"retry_after_ms\":0"),
        (RetryHint::Never, _) => out.extend_from_slice(b",\"retry_after\":null,\"retry_after_ms\":null,\"never\":true"),
        (RetryHint::After { secs, millis, .. }, _) => {
            out.extend_from_slice(b",\"retry_after\":");
            number(out, secs);
            out.extend_from_slice(b",\"retry_after_ms\":");
            number(out, millis);
        }
    }
}

/// While the store is away, rules have no outcome, as if they set no limit.
fn reason_text(mode: DecidedBy, reason: Reason) -> &'static str {
    match (mode, reason) {
        (DecidedBy::Open, Reason::Unlimited) => "the store does not answer: allowed by policy",
        (_, reason) => reason.text(),
    }
}

fn write_violated(rule: &Rule, policy: &Policy<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"violated_rule\":{\"name\":");
    string(out, &rule.name);
    out.extend_from_slice(b",\"scope\":\"");
    write_scope(rule, out);
    out.extend_from_slice(b"\",\"limit\":");
    number(out, policy.limit);
    out.extend_from_slice(b",\"window_seconds\":");
    match rule.limit.filter(|limit| limit.kind() != LimitKind::Concurrency) {
        Some(limit) => write_seconds(limit.window(), out),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}

/// The key as rules write it: `user_id:endpoint`.
fn write_scope(rule: &Rule, out: &mut Vec<u8>) {
    let parts = rule.spec.key_by.as_ref().map(|key| key.parts.as_slice()).unwrap_or_default();
    if parts.is_empty() {
        out.extend_from_slice(b"global");
    }
    for (index, part) in parts.iter().enumerate() {
        for (choice, name) in part.iter().enumerate() {
            match (index, choice) {
                (0, 0) => {}
                (_, 0) => out.push(b':'),
                _ => out.push(b'|'),
            }
            escaped(out, name);
        }
    }
}

/// Seconds with up to three decimals, rounded up.
fn write_seconds(span: Span, out: &mut Vec<u8>) {
    let millis = span.millis_ceil();
    number(out, millis / 1000);
    let (mut rest, mut place) = (millis % 1000, 100);
    if rest > 0 {
        out.push(b'.');
    }
    while rest > 0 {
        number(out, rest / place);
        (rest, place) = (rest % place, place / 10);
    }
}

fn write_rulings(decision: &Decision, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"rules\":[");
    let known = decision.rulings().iter().filter_map(|ruling| Some((decision.rule(ruling)?, ruling)));
    for (index, (rule, ruling)) in known.enumerate() {
        out.extend_from_slice(if index == 0 { b"{\"rule\":" } else { b",{\"rule\":" });
        write_ruling(rule, ruling, out);
        out.push(b'}');
    }
    out.push(b']');
}

/// The meter that the numbers of a rule count. Names of meters hold nothing that JSON escapes.
fn write_meter(meter: &MeterSpec, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"meter\":\"");
    let _ = write!(out, "{meter}"); // a vector grows
    out.push(b'"');
}

fn write_ruling(rule: &Rule, ruling: &Ruling, out: &mut Vec<u8>) {
    let policy = Policy::of(rule, ruling);
    string(out, &rule.name);
    out.extend_from_slice(if ruling.refused() { b",\"allowed\":false" } else { b",\"allowed\":true" });
    out.extend_from_slice(b",\"limit\":");
    number_or_null(out, policy.as_ref().map(|policy| policy.limit));
    out.extend_from_slice(b",\"remaining\":");
    write_remaining(policy.as_ref(), ruling.decided_by, out);
    if let Some(meter) = meter_of(rule) {
        write_meter(meter, out);
    }
    match ruling.outcome.map(|outcome| outcome.wait) {
        Some(Wait::For(wait)) => {
            out.extend_from_slice(b",\"retry_after_ms\":");
            number(out, wait.millis_ceil());
        }
        Some(Wait::Never) => out.extend_from_slice(b",\"never\":true"),
        Some(Wait::None) | None => {}
    }
    if !ruling.enforced {
        out.extend_from_slice(b",\"shadow\":true");
    }
}

/// Appends a whole number.
#[inline]
pub(super) fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a number, or `null`.
#[inline]
pub(super) fn number_or_null(out: &mut Vec<u8>, value: Option<u64>) {
    match value {
        Some(value) => number(out, value),
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends a string, quotes included.
#[inline]
pub(super) fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escaped(out, text);
    out.push(b'"');
}

/// Appends the content of a string. Escapes all control characters, more than JSON demands: responses end up in logs
/// and terminals.
#[inline]
pub(super) fn escaped(out: &mut Vec<u8>, text: &str) {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    match text.bytes().all(plain) {
        true => out.extend_from_slice(text.as_bytes()),
        false => text.chars().for_each(|letter| character(out, letter)),
    }
}

fn character(out: &mut Vec<u8>, letter: char) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match letter {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        letter if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') => {
            out.extend_from_slice(b"\\u");
            let code = u32::from(letter);
            let digits = [12, 8, 4, 0].into_iter().filter_map(|shift| HEX.get((code >> shift) as usize & 15));
            out.extend(digits);
        }
        letter => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let every: String = (0..0x3000).filter_map(char::from_u32).chain("🦀\u{10ffff}".chars()).collect();
        for text in ["", "plain", "a\"b\\c", "café\n\t\r\u{7f}\u{85}\u{2028}", &every] {
            let mut out = Vec::new();
            string(&mut out, text);
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
            let written = String::from_utf8(out).unwrap();
            assert!(!written.chars().any(char::is_control), "{written:?}");
        }
    }
}
