//! RESP: a command framed, the end of a reply found.

use crate::error::LoadError;
use crate::reply::{FindReply, MalformedReply, ParsedReply, REPLY_MAX, ReplyVerdict};
use crate::request::LoadRequest;
use crate::template::TemplateText;

/// Longest line that is no text of its own: an error, a number, a length.
const LINE_MAX: usize = 64 << 10;
/// How deep arrays may lie in each other.
const DEPTH_MAX: usize = 8;

/// The command as an array of its words, and how its replies are read.
pub fn frame(request: &LoadRequest) -> Result<(TemplateText, FindReply), LoadError> {
    let words: Vec<&[u8]> =
        request.body.split(u8::is_ascii_whitespace).filter(|word: &&[u8]| !word.is_empty()).collect();
    let Some(name) = words.first() else { return Err(LoadError::invalid("a command needs at least its name")) };
    if !request.headers.is_empty() {
        return Err(LoadError::invalid("RESP has no headers"));
    }
    let mut source = format!("*{}\r\n", words.len()).into_bytes();
    for word in &words {
        source.extend_from_slice(format!("${}\r\n", TemplateText::len_of(word)).as_bytes());
        source.extend_from_slice(word);
        source.extend_from_slice(b"\r\n");
    }
    // Of two commands that answer with five numbers, one says 0 and the other 1 when the request may pass.
    let find = if name.eq_ignore_ascii_case(b"THROTTLE") { find::<1> } else { find::<0> };
    Ok((TemplateText::new(source), find))
}

/// The first whole reply. Of an array of numbers, the first is `PASSES` if the request may pass; an array of pairs says so
/// by itself, if it begins with `allowed`; anything else that is no error lets it pass.
pub fn find<const PASSES: i64>(bytes: &[u8]) -> Result<Option<ParsedReply>, MalformedReply> {
    let Some((length, value)) = value(bytes, 0)? else { return Ok(None) };
    let allowed = |passes: bool| if passes { ReplyVerdict::Allowed } else { ReplyVerdict::Denied };
    let verdict = match value {
        Value::Error => ReplyVerdict::Failed(0),
        Value::List(First::Number(number)) => allowed(number == PASSES),
        Value::List(First::Allowed(passes)) => allowed(passes),
        _ => ReplyVerdict::Allowed,
    };
    Ok(Some(ParsedReply { length, verdict, is_last: false }))
}

/// A value, as far as a verdict can be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Number(i64),
    Error,
    /// The text `allowed`.
    Mark,
    List(First),
    Other,
}

/// What a list begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Number(i64),
    Allowed(bool),
    Other,
}

/// The value at the front with its length; `None` if its end has not come yet.
fn value(bytes: &[u8], depth: usize) -> Result<Option<(usize, Value)>, MalformedReply> {
    let Some((kind, rest)) = bytes.split_first() else { return Ok(None) };
    if !b"+-:$*%~_#,=!(>".contains(kind) {
        return Err(MalformedReply("no reply begins like this"));
    }
    let Some(end) = rest.iter().take(LINE_MAX).position(|byte| *byte == b'\n') else {
        return if rest.len() >= LINE_MAX { Err(MalformedReply("a line that does not end")) } else { Ok(None) };
    };
    let line = rest.get(..end).and_then(|line| line.strip_suffix(b"\r")).ok_or(MalformedReply("a line without \\r"))?;
    let head = end + 2;
    match kind {
        b'*' | b'~' | b'>' => list(bytes, head, number(line)?, depth),
        b'%' => list(bytes, head, number(line)?.saturating_mul(2), depth),
        b'$' | b'=' | b'!' => text(bytes, head, *kind, number(line)?),
        b':' => Ok(Some((head, Value::Number(number(line)?)))),
        b'#' => Ok(Some((head, Value::Number(i64::from(line == b"t"))))),
        b'-' => Ok(Some((head, Value::Error))),
        _ => Ok(Some((head, Value::Other))),
    }
}

fn text(bytes: &[u8], head: usize, kind: u8, length: i64) -> Result<Option<(usize, Value)>, MalformedReply> {
    let Ok(length) = usize::try_from(length) else { return Ok(Some((head, Value::Other))) }; // -1 is a null
    if length > REPLY_MAX {
        return Err(MalformedReply("the reply is too long"));
    }
    let end = head + length;
    let (Some(text), Some(tail)) = (bytes.get(head..end), bytes.get(end..end + 2)) else { return Ok(None) };
    let value = match (kind, text) {
        (b'!', _) => Value::Error,
        (_, b"allowed") => Value::Mark,
        _ => Value::Other,
    };
    match tail {
        b"\r\n" => Ok(Some((end + 2, value))),
        _ => Err(MalformedReply("a text longer than its length")),
    }
}

fn list(bytes: &[u8], head: usize, count: i64, depth: usize) -> Result<Option<(usize, Value)>, MalformedReply> {
    if depth == DEPTH_MAX {
        return Err(MalformedReply("too many arrays in each other"));
    }
    let (mut at, mut first) = (head, First::Other);
    let mut marked = false;
    for place in 0..count {
        let Some((length, found)) = value(bytes.get(at..).unwrap_or_default(), depth + 1)? else { return Ok(None) };
        at += length;
        match (place, found) {
            (0, Value::Number(number)) => first = First::Number(number),
            (0, Value::Mark) => marked = true,
            (1, Value::Number(number)) if marked => first = First::Allowed(number == 1),
            _ => {}
        }
    }
    Ok(Some((at, Value::List(first))))
}

fn number(line: &[u8]) -> Result<i64, MalformedReply> {
    let (is_negative, digits) = match line.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, line),
    };
    let mut number: i64 = 0;
    for digit in digits {
        let digit = Some(digit.wrapping_sub(b'0')).filter(|digit| *digit < 10).ok_or(MalformedReply("no number"))?;
        number = number.saturating_mul(10).saturating_add(i64::from(digit));
    }
    match digits {
        [] => Err(MalformedReply("no number")),
        _ => Ok(if is_negative { -number } else { number }),
    }
}

#[cfg(test)]
mod tests;
