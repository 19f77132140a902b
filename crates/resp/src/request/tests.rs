//! Requests whole, cut anywhere, byte by byte, and malformed.

use super::*;
use crate::ProtocolVersion;

/// Parses bytes that arrive in these pieces: every request, then the error if there is one.
fn read(pieces: &[&[u8]], limits: &RequestLimits) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
    let (mut parser, mut input, mut start, mut commands) = (RequestParser::default(), Vec::new(), 0, Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            match parser.next(&input[start..], limits) {
                Ok(None) => break,
                Err(error) => return (commands, Some(error)),
                Ok(Some(bytes)) => {
                    let arguments = parser.arguments(&input[start..]);
                    commands.push(arguments.from(0).map(<[u8]>::to_vec).collect());
                    start += bytes;
                }
            }
        }
    }
    (commands, None)
}

fn words(commands: &[Vec<Vec<u8>>]) -> Vec<Vec<String>> {
    let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
    commands.iter().map(|command| command.iter().map(text).collect()).collect()
}

/// Parses the bytes whole, cut at every position and byte by byte: always the same.
#[track_caller]
fn reads(bytes: &[u8], expected: &[&[&str]], error: Option<ProtocolError>) {
    let whole = read(&[bytes], &RequestLimits::AUTHENTICATED);
    assert_eq!(words(&whole.0), expected, "{}", bytes.escape_ascii());
    assert_eq!(whole.1, error, "{}", bytes.escape_ascii());
    for cut in 0..=bytes.len() {
        let (left, right) = bytes.split_at(cut);
        assert_eq!(
            read(&[left, right], &RequestLimits::AUTHENTICATED),
            whole,
            "cut at {cut} of {}",
            bytes.escape_ascii()
        );
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(read(&single, &RequestLimits::AUTHENTICATED), whole, "byte by byte: {}", bytes.escape_ascii());
}

#[test]
fn arrays_and_lines_are_commands_wherever_they_are_cut() {
    reads(b"*1\r\n$4\r\nPING\r\n", &[&["PING"]], None);
    reads(b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", &[&["ECHO", ""]], None);
    reads(b"*2\r\n$4\r\nECHO\r\n$4\r\na\r\nb\r\n*1\r\n$1\r\nx\r\n", &[&["ECHO", "a\r\nb"], &["x"]], None);
    reads(b"PING\r\nPING\necho  a\tb \r\n", &[&["PING"], &["PING"], &["echo", "a", "b"]], None);
    reads(b"*1\r\n$4\r\nPING\r\nPING\r\n*1\r\n$4\r\nPI", &[&["PING"], &["PING"]], None);
}

#[test]
fn empty_requests_have_no_arguments() {
    reads(b"*0\r\n*-1\r\n\r\n\n  \r\nPING\r\n", &[&[], &[], &[], &[], &[], &["PING"]], None);
}

#[test]
fn malformed_lengths_are_errors() {
    for bytes in ["*abc\r\n", "*\r\n", "*-5\r\n", "*2147483648\r\n", "*1000000000\r\n", "*65\r\n", "* 1\r\n", "*+1\r\n"]
    {
        reads(bytes.as_bytes(), &[], Some(ProtocolError::MultibulkLength));
    }
    reads(b"*99999999999999999999\r\n", &[], Some(ProtocolError::MultibulkLength));
    reads(b"*1\rX", &[], Some(ProtocolError::MultibulkLength));
    for bytes in ["$-1\r\n", "$abc\r\n", "$\r\n", "$65537\r\n", "$99999999999999999999\r\n", "$ 1\r\n"] {
        reads(format!("*1\r\n{bytes}").as_bytes(), &[], Some(ProtocolError::BulkLength));
    }
    reads(b"*1\r\n:1\r\n", &[], Some(ProtocolError::ExpectedBulk(b':')));
    reads(b"*2\r\n$1\r\na\r\n+", &[], Some(ProtocolError::ExpectedBulk(b'+')));
    for mark in *b"+-:$_#,(!=%~>|.;" {
        reads(&[&[mark][..], b"1\r\nPING\r\n"].concat(), &[], Some(ProtocolError::ExpectedArray(mark)));
        reads(&[&b"PING\r\n"[..], &[mark]].concat(), &[&["PING"]], Some(ProtocolError::ExpectedArray(mark)));
    }
    reads(b"*1\r\n$1\r\nab\r\n", &[], Some(ProtocolError::MissingCrlf));
    reads(b"*1\r\n$1\r\na\rb", &[], Some(ProtocolError::MissingCrlf));
}

#[test]
fn quotes_and_escapes_are_those_of_redis() {
    let line = b"ECHO \"a b\" 'c d' \"\\x41\\x0a\\n\\t\\\"\\\\\" '\\'' \"\"\r\n";
    reads(line, &[&["ECHO", "a b", "c d", "A\n\n\t\"\\", "'", ""]], None);
    reads(b"ECHO \"\\xZZ\"\r\n", &[&["ECHO", "xZZ"]], None);
    for bytes in ["ECHO \"a\r\n", "ECHO 'a\r\n", "ECHO \"a\"b\r\n", "ECHO 'a'b\r\n", "\"\r\n"] {
        reads(bytes.as_bytes(), &[], Some(ProtocolError::UnbalancedQuotes));
    }
}

#[test]
fn other_protocols_are_recognised() {
    reads(b"POST / HTTP/1.1\r\n", &[], Some(ProtocolError::OtherProtocol));
    reads(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", &[], Some(ProtocolError::OtherProtocol));
    reads(b"PRI * HTTP/2.0\r\n", &[], Some(ProtocolError::OtherProtocol));
    reads(b"ECHO HTTP/1.1\r\n", &[&["ECHO", "HTTP/1.1"]], None);
    reads(b"host: x\r\n", &[], Some(ProtocolError::OtherProtocol));
    reads(b"\x16\x03\x01\x02\x00\x01", &[], Some(ProtocolError::OtherProtocol));
    reads(b"\0\r\n", &[], Some(ProtocolError::OtherProtocol));
}

#[test]
fn oversized_requests_are_refused_as_soon_as_their_size_is_known() {
    let line = [b"ECHO ".as_slice(), &[b'x'; 5000]].concat();
    assert_eq!(read(&[&line], &RequestLimits::AUTHENTICATED).1, Some(ProtocolError::InlineTooLong));
    assert_eq!(
        read(&line.chunks(7).collect::<Vec<_>>(), &RequestLimits::AUTHENTICATED).1,
        Some(ProtocolError::InlineTooLong)
    );
    assert_eq!(read(&[&line, b"\r\n"], &RequestLimits::AUTHENTICATED).1, Some(ProtocolError::InlineTooLong));
    let most = [b"ECHO ".as_slice(), &[b'x'; 4090], b"\r\n"].concat();
    assert_eq!(read(&[&most], &RequestLimits::AUTHENTICATED).1, None);
    let many = format!("{}\r\n", "x ".repeat(65));
    assert_eq!(read(&[many.as_bytes()], &RequestLimits::AUTHENTICATED).1, Some(ProtocolError::TooManyWords));

    let element = [b"$65536\r\n".as_slice(), &[b'x'; 65536], b"\r\n"].concat();
    let large = [b"*64\r\n".as_slice(), &element.repeat(64)].concat();
    assert_eq!(read(&[&large], &RequestLimits::AUTHENTICATED), (Vec::new(), Some(ProtocolError::RequestTooLong)));
    let within = [b"*15\r\n".as_slice(), &element.repeat(15)].concat();
    assert_eq!(read(&within.chunks(1000).collect::<Vec<_>>(), &RequestLimits::AUTHENTICATED).0.len(), 1);
}

#[test]
fn unauthenticated_connections_have_lower_limits() {
    let read = |text: &str| read(&[text.as_bytes()], &RequestLimits::UNAUTHENTICATED).1;
    assert_eq!(read("*11\r\n"), Some(ProtocolError::MultibulkLength));
    assert_eq!(read("*1\r\n$16385\r\n"), Some(ProtocolError::BulkLength));
    assert_eq!(read("*10\r\n$16384\r\n"), None);
    let long = format!("${}\r\n{}\r\n", 16 << 10, "x".repeat(16 << 10));
    assert_eq!(read(&format!("*2\r\n{long}$4096\r\n")), Some(ProtocolError::RequestTooLong));
}

#[test]
fn error_replies_are_those_of_redis() {
    let reply = |error: ProtocolError| {
        let mut out = Vec::new();
        error.write(&mut ReplyWriter::new(&mut out, ProtocolVersion::Resp2));
        out
    };
    assert_eq!(reply(ProtocolError::MultibulkLength), b"-ERR Protocol error: invalid multibulk length\r\n");
    assert_eq!(reply(ProtocolError::ExpectedBulk(0xff)), b"-ERR Protocol error: expected '$', got '\xff'\r\n");
    assert_eq!(reply(ProtocolError::ExpectedArray(b'+')), b"-ERR Protocol error: expected '*', got '+'\r\n");
    assert_eq!(reply(ProtocolError::OtherProtocol), b"");
    assert!(ProtocolError::TooManyWords.is_oversized() && !ProtocolError::BulkLength.is_oversized());
}
