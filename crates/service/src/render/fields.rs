//! Values of header fields, always valid in HTTP and structured fields (RFC 9651).

use std::io::Write;

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use tollgate_core::{Span, Time};

use super::Policy;
use super::body::number;
use super::style::{HeaderField, HeaderItem, HeaderPart, HeaderStyles, PolicySelector};
use crate::reply::HeaderFields;

/// The largest integer of a structured field: fifteen digits.
const INTEGER_MAX: u64 = 999_999_999_999_999;

/// Adds the fields of all `styles`; none without a deciding policy.
pub(super) fn write<'a>(
    styles: HeaderStyles,
    now: Time,
    deciding: Option<&Policy<'_>>,
    every: impl Iterator<Item = Policy<'a>> + Clone,
    fields: &mut HeaderFields,
) {
    let Some(deciding) = deciding else { return };
    for field in styles.iter().flat_map(|style| style.fields) {
        if applies(field, every.clone()) && (deciding.reset.is_some() || !tells_reset(field)) {
            fields.push_with(field.name, |out| write_field(field, now, deciding, every.clone(), out));
        }
    }
}

/// Whether the field is the time of the reset, which a quota for ever does not have.
fn tells_reset(field: &HeaderField) -> bool {
    let mut parts = field.runs.iter().flat_map(|(_, item)| item.iter());
    parts.any(|(_, part)| matches!(part, HeaderPart::ResetIn | HeaderPart::ResetAt))
}

fn applies<'a>(field: &HeaderField, mut every: impl Iterator<Item = Policy<'a>>) -> bool {
    match field.runs {
        [(PolicySelector::Window(window), _)] => every.any(|policy| policy.window == Some(*window)),
        _ => true,
    }
}

#[inline]
fn write_field<'a>(
    field: &HeaderField,
    now: Time,
    deciding: &Policy<'_>,
    every: impl Iterator<Item = Policy<'a>> + Clone,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let mut add = |policy: &Policy<'_>, item: HeaderItem| {
        if out.len() > start {
            out.extend_from_slice(b", ");
        }
        item.iter().for_each(|(before, part)| write_part(*part, before, policy, now, out));
    };
    for (selector, item) in field.runs {
        match selector {
            PolicySelector::Deciding => add(deciding, item),
            PolicySelector::Every => every.clone().for_each(|policy| add(&policy, item)),
            PolicySelector::Window(window) => {
                let mut within = every.clone().filter(|policy| policy.window == Some(*window));
                within.next().iter().for_each(|policy| add(policy, item));
            }
        }
    }
}

#[inline]
fn write_part(part: HeaderPart, before: &str, policy: &Policy<'_>, now: Time, out: &mut Vec<u8>) {
    let value = match part {
        HeaderPart::Quota => Some(policy.quota),
        HeaderPart::Window => policy.window,
        HeaderPart::Burst => (policy.limit != policy.quota).then_some(policy.limit),
        HeaderPart::Limit => Some(policy.limit),
        HeaderPart::Remaining => Some(policy.remaining),
        HeaderPart::Used => Some(policy.used),
        HeaderPart::Next => policy.next.map(Span::secs_ceil),
        HeaderPart::NextOrZero => Some(policy.next.map_or(0, Span::secs_ceil)),
        HeaderPart::ResetIn => policy.reset.map(Span::secs_ceil),
        HeaderPart::ResetAt => policy.reset.map(|reset| now.after(reset).secs_ceil()),
        HeaderPart::Name | HeaderPart::Resource | HeaderPart::Unit | HeaderPart::Partition => {
            return write_text(part, before, policy, out);
        }
    };
    if let Some(value) = value {
        out.extend_from_slice(before.as_bytes());
        number(out, value.min(INTEGER_MAX));
    }
}

fn write_text(part: HeaderPart, before: &str, policy: &Policy<'_>, out: &mut Vec<u8>) {
    let (text, partition) = match part {
        HeaderPart::Name => (Some(policy.name), None),
        HeaderPart::Resource => return visible(out, policy.resource, false),
        HeaderPart::Unit => (policy.unit, None),
        _ => (None, policy.partition),
    };
    if text.is_none() && partition.is_none() {
        return;
    }
    out.extend_from_slice(before.as_bytes());
    if let Some(text) = text {
        out.push(b'"');
        visible(out, text, true);
        out.push(b'"');
    }
    if let Some(bytes) = partition {
        out.push(b':');
        let _ = EncoderWriter::new(&mut *out, &STANDARD).write_all(bytes); // a Vec takes everything
        out.push(b':');
    }
}

/// Appends text as visible ASCII. Names from rules files are always ASCII; other characters of rules built in code are
/// percent-encoded.
#[inline]
fn visible(out: &mut Vec<u8>, text: &str, quoted: bool) {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if text.bytes().all(plain) {
        return out.extend_from_slice(text.as_bytes());
    }
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' if quoted => out.extend_from_slice(&[b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            _ => {
                let digits = [byte >> 4, byte & 15].into_iter().filter_map(|digit| HEX.get(usize::from(digit)));
                out.push(b'%');
                out.extend(digits);
            }
        }
    }
}

#[cfg(test)]
mod tests;
