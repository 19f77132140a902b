//! RESP: encodes a command, and finds the end and the verdict of a reply.

use tollgate_resp::{ProtocolVersion, ReplyLimits, ReplyScanner, ReplyToken, write_array_header, write_bulk_header};

use crate::error::LoadError;
use crate::reply::{FindReply, MalformedReply, ParsedReply, REPLY_MAX, ReplyVerdict};
use crate::request::LoadRequest;
use crate::template::TemplateText;

/// Servers may reply in either version.
const LIMITS: ReplyLimits = ReplyLimits { bytes: REPLY_MAX, version: ProtocolVersion::Resp3 };

/// The command as an array of its words, and how its replies are read.
pub fn frame(request: &LoadRequest) -> Result<(TemplateText, FindReply), LoadError> {
    let words: Vec<&[u8]> =
        request.body.split(u8::is_ascii_whitespace).filter(|word: &&[u8]| !word.is_empty()).collect();
    let Some(name) = words.first() else { return Err(LoadError::invalid("a command needs at least its name")) };
    if !request.headers.is_empty() {
        return Err(LoadError::invalid("RESP has no headers"));
    }
    let mut source = Vec::new();
    write_array_header(&mut source, words.len());
    for word in &words {
        write_bulk_header(&mut source, TemplateText::len_of(word)); // with the keys filled in
        source.extend_from_slice(word);
        source.extend_from_slice(b"\r\n");
    }
    // Two commands reply with five numbers: the first number of an allowed request is 1 for THROTTLE, 0 for CL.THROTTLE.
    let find = if name.eq_ignore_ascii_case(b"THROTTLE") { find::<1> } else { find::<0> };
    Ok((TemplateText::new(source), find))
}

/// The first whole reply. A list of numbers allows the request if it begins with `PASSES`; a list of pairs, if it begins
/// with a true `allowed`. Any other reply but an error allows it.
pub fn find<const PASSES: i64>(bytes: &[u8]) -> Result<Option<ParsedReply>, MalformedReply> {
    let mut scanner = ReplyScanner::new(bytes, LIMITS);
    // The reply itself, and its first two elements if it is a list. A verdict is nowhere else.
    let mut first = [None; 3];
    let mut tokens = 0;
    while !scanner.is_complete() {
        let Some(token) = scanner.next_token().map_err(|error| MalformedReply(error.reason()))? else {
            return Ok(None);
        };
        if let Some(place) = first.get_mut(tokens) {
            *place = Some(token);
        }
        tokens += 1;
    }
    Ok(Some(ParsedReply { length: scanner.position(), verdict: verdict(first, PASSES), is_last: false }))
}

fn verdict(first: [Option<ReplyToken<'_>>; 3], passes: i64) -> ReplyVerdict {
    use ReplyToken::{Array, Boolean, Error, Integer, Map, Push, Text};
    let allowed = |allowed: bool| if allowed { ReplyVerdict::Allowed } else { ReplyVerdict::Denied };
    match first {
        [Some(Error(_)), ..] => ReplyVerdict::Failed(0),
        [Some(Array(_) | Map(_) | Push(_)), element, next] => match (element, next) {
            (Some(Integer(number)), _) => allowed(number == passes),
            (Some(Boolean(boolean)), _) => allowed(i64::from(boolean) == passes),
            (Some(Text(b"allowed")), Some(Integer(number))) => allowed(number == 1),
            (Some(Text(b"allowed")), Some(Boolean(boolean))) => allowed(boolean),
            _ => ReplyVerdict::Allowed,
        },
        _ => ReplyVerdict::Allowed,
    }
}

#[cfg(test)]
mod tests;
