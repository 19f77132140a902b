//! Fuzz entry point. Checks that the parsed commands do not depend on how the bytes are split, that limits hold, and
//! that malformed arguments give well-formed errors.

use tollgate_core::Secret;
use tollgate_resp::{Arguments, ProtocolError, ProtocolVersion, ReplyWriter, RequestLimits, RequestParser};

use crate::convert;
use crate::throttle::{Buckets, Throttle, ThrottleDialect};

/// Inputs up to this length are split at every offset, longer ones at a sample of offsets.
const CUT_EVERYWHERE: usize = 256;

type Read = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// Parses arbitrary bytes as the input of a connection.
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

/// Parses pieces as a connection does: all commands, then the protocol error if there is one.
fn read(pieces: &[&[u8]], limits: &RequestLimits) -> Read {
    let (mut parser, mut input, mut start) = (RequestParser::default(), Vec::new(), 0);
    let mut commands: Vec<Vec<Vec<u8>>> = Vec::new();
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            let rest = input.get(start..).unwrap_or_default();
            match parser.next(rest, limits) {
                Err(fault) => return (commands, Some(fault)),
                Ok(None) => {
                    assert!(rest.len() <= limits.command, "{} bytes are held for one command", rest.len());
                    break;
                }
                Ok(Some(bytes)) => {
                    assert!(bytes > 0 && bytes <= rest.len() && bytes <= limits.command.max(limits.inline + 1));
                    let arguments = parser.arguments(rest);
                    check_command_invariants(arguments, limits);
                    commands.push(arguments.from(0).map(<[u8]>::to_vec).collect());
                    start += bytes;
                }
            }
        }
    }
    (commands, None)
}

fn check_command_invariants(arguments: Arguments<'_>, limits: &RequestLimits) {
    assert!(arguments.len() <= limits.elements);
    assert_eq!(arguments.from(0).count(), arguments.len(), "every argument is where it should be");
    assert!(arguments.from(0).all(|argument| argument.len() <= limits.bulk.max(limits.inline)));
    let buckets = Buckets::new(Secret::new([7; 16]), true);
    let mut out = Vec::new();
    for dialect in [ThrottleDialect::RedisCell, ThrottleDialect::Throttlecrab] {
        match Throttle::read(dialect, arguments, &buckets) {
            Ok(throttle) => assert!(throttle.charge.limit.capacity() > 0),
            Err(error) => error.write(dialect, &mut ReplyWriter::new(&mut out, ProtocolVersion::Resp2)),
        }
    }
    if let Err(error) = convert::read_check_request(arguments, false) {
        error.write(&mut ReplyWriter::new(&mut out, ProtocolVersion::Resp3));
    }
    let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    assert!(lines.clone().all(|line| line.starts_with(b"-ERR ") && line.ends_with(b"\r")), "{}", out.escape_ascii());
}
