//! RESP: bytes are the same commands however they arrive, none is larger than it may be, and what throttles make of them
//! is an answer.

use tollgate_core::Secret;
use tollgate_resp::{Arguments, ProtocolError, ProtocolVersion, ReplyWriter, RequestLimits, RequestParser};

use crate::convert;
use crate::throttle::{Buckets, Style, Throttle};

/// Inputs up to this length are cut at every place, longer ones at a few.
const CUT_EVERYWHERE: usize = 256;

type Read = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// Any bytes as what comes over a connection.
pub fn resp_request(data: &[u8]) {
    for limits in [RequestLimits::AUTHENTICATED, RequestLimits::UNAUTHENTICATED] {
        let whole = read(&[data], &limits);
        let step = (data.len() / CUT_EVERYWHERE).max(1);
        for cut in (0..=data.len()).step_by(step) {
            let (left, right) = data.split_at(cut);
            assert_eq!(read(&[left, right], &limits), whole, "cut at {cut}");
        }
        let pieces: Vec<&[u8]> = data.chunks(1).collect();
        assert_eq!(read(&pieces, &limits), whole, "byte by byte");
    }
}

/// Reads pieces as a connection does: every command, then the fault if there is one.
fn read(pieces: &[&[u8]], limits: &RequestLimits) -> Read {
    let (mut frames, mut input, mut start) = (RequestParser::default(), Vec::new(), 0);
    let mut commands: Vec<Vec<Vec<u8>>> = Vec::new();
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            let rest = input.get(start..).unwrap_or_default();
            match frames.next(rest, limits) {
                Err(fault) => return (commands, Some(fault)),
                Ok(None) => {
                    assert!(rest.len() <= limits.command, "{} bytes are held for one command", rest.len());
                    break;
                }
                Ok(Some(bytes)) => {
                    assert!(bytes > 0 && bytes <= rest.len() && bytes <= limits.command.max(limits.inline + 1));
                    let arguments = frames.arguments(rest);
                    keeps_its_promises(arguments, limits);
                    commands.push(arguments.from(0).map(<[u8]>::to_vec).collect());
                    start += bytes;
                }
            }
        }
    }
    (commands, None)
}

fn keeps_its_promises(arguments: Arguments<'_>, limits: &RequestLimits) {
    assert!(arguments.len() <= limits.elements);
    assert_eq!(arguments.from(0).count(), arguments.len(), "every argument is where it should be");
    assert!(arguments.from(0).all(|argument| argument.len() <= limits.bulk.max(limits.inline)));
    let buckets = Buckets::new(Secret::new([7; 16]), true);
    let mut out = Vec::new();
    for style in [Style::Cell, Style::Crab] {
        match Throttle::read(style, arguments, &buckets) {
            Ok(throttle) => assert!(throttle.charge.limit.capacity() > 0),
            Err(refused) => refused.write(style, &mut ReplyWriter::new(&mut out, ProtocolVersion::Resp2)),
        }
    }
    if let Err(wrong) = convert::asked(arguments, false) {
        wrong.write(&mut ReplyWriter::new(&mut out, ProtocolVersion::Resp3));
    }
    let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    assert!(lines.clone().all(|line| line.starts_with(b"-ERR ") && line.ends_with(b"\r")), "{}", out.escape_ascii());
}
