//! Framing: byte by byte, cut anywhere, whole or broken.

use super::*;

/// What a reader makes of bytes that arrive in these pieces: every command, then the fault if there is one.
fn read(pieces: &[&[u8]], limits: &FrameLimits) -> (Vec<Vec<Vec<u8>>>, Option<Fault>) {
    let (mut frames, mut input, mut start, mut commands) = (Frames::default(), Vec::new(), 0, Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            match frames.next(&input[start..], limits) {
                Ok(None) => break,
                Err(fault) => return (commands, Some(fault)),
                Ok(Some(bytes)) => {
                    let arguments = frames.arguments(&input[start..]);
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

/// Reads the bytes whole and cut at every place: always the same.
#[track_caller]
fn reads(bytes: &[u8], expected: &[&[&str]], fault: Option<Fault>) {
    let whole = read(&[bytes], &FrameLimits::KNOWN);
    assert_eq!(words(&whole.0), expected, "{}", bytes.escape_ascii());
    assert_eq!(whole.1, fault, "{}", bytes.escape_ascii());
    for cut in 0..=bytes.len() {
        let (left, right) = bytes.split_at(cut);
        assert_eq!(read(&[left, right], &FrameLimits::KNOWN), whole, "cut at {cut} of {}", bytes.escape_ascii());
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(read(&single, &FrameLimits::KNOWN), whole, "byte by byte: {}", bytes.escape_ascii());
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
fn nothing_is_no_command() {
    reads(b"*0\r\n*-1\r\n\r\n\n  \r\nPING\r\n", &[&[], &[], &[], &[], &[], &["PING"]], None);
}

#[test]
fn lengths_that_are_none_are_faults() {
    for bytes in ["*abc\r\n", "*\r\n", "*-5\r\n", "*2147483648\r\n", "*1000000000\r\n", "*65\r\n", "* 1\r\n", "*+1\r\n"]
    {
        reads(bytes.as_bytes(), &[], Some(Fault::Multibulk));
    }
    reads(b"*99999999999999999999\r\n", &[], Some(Fault::Multibulk));
    reads(b"*1\rX", &[], Some(Fault::Multibulk));
    for bytes in ["$-1\r\n", "$abc\r\n", "$\r\n", "$65537\r\n", "$99999999999999999999\r\n", "$ 1\r\n"] {
        reads(format!("*1\r\n{bytes}").as_bytes(), &[], Some(Fault::Bulk));
    }
    reads(b"*1\r\n:1\r\n", &[], Some(Fault::NoBulk(b':')));
    reads(b"*2\r\n$1\r\na\r\n+", &[], Some(Fault::NoBulk(b'+')));
    for mark in *b"+-:$_#,(!=%~>|.;" {
        reads(&[&[mark][..], b"1\r\nPING\r\n"].concat(), &[], Some(Fault::NoCommand(mark)));
        reads(&[&b"PING\r\n"[..], &[mark]].concat(), &[&["PING"]], Some(Fault::NoCommand(mark)));
    }
    reads(b"*1\r\n$1\r\nab\r\n", &[], Some(Fault::NoEnd));
    reads(b"*1\r\n$1\r\na\rb", &[], Some(Fault::NoEnd));
}

#[test]
fn quotes_and_escapes_are_those_of_redis() {
    let line = b"ECHO \"a b\" 'c d' \"\\x41\\x0a\\n\\t\\\"\\\\\" '\\'' \"\"\r\n";
    reads(line, &[&["ECHO", "a b", "c d", "A\n\n\t\"\\", "'", ""]], None);
    reads(b"ECHO \"\\xZZ\"\r\n", &[&["ECHO", "xZZ"]], None);
    for bytes in ["ECHO \"a\r\n", "ECHO 'a\r\n", "ECHO \"a\"b\r\n", "ECHO 'a'b\r\n", "\"\r\n"] {
        reads(bytes.as_bytes(), &[], Some(Fault::Quotes));
    }
}

#[test]
fn other_protocols_are_foreign() {
    reads(b"POST / HTTP/1.1\r\n", &[], Some(Fault::Foreign));
    reads(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", &[], Some(Fault::Foreign));
    reads(b"PRI * HTTP/2.0\r\n", &[], Some(Fault::Foreign));
    reads(b"ECHO HTTP/1.1\r\n", &[&["ECHO", "HTTP/1.1"]], None);
    reads(b"host: x\r\n", &[], Some(Fault::Foreign));
    reads(b"\x16\x03\x01\x02\x00\x01", &[], Some(Fault::Foreign));
    reads(b"\0\r\n", &[], Some(Fault::Foreign));
}

#[test]
fn what_is_too_long_is_refused_when_that_is_known() {
    let line = [b"ECHO ".as_slice(), &[b'x'; 5000]].concat();
    assert_eq!(read(&[&line], &FrameLimits::KNOWN).1, Some(Fault::Inline));
    assert_eq!(read(&line.chunks(7).collect::<Vec<_>>(), &FrameLimits::KNOWN).1, Some(Fault::Inline));
    assert_eq!(read(&[&line, b"\r\n"], &FrameLimits::KNOWN).1, Some(Fault::Inline));
    let most = [b"ECHO ".as_slice(), &[b'x'; 4090], b"\r\n"].concat();
    assert_eq!(read(&[&most], &FrameLimits::KNOWN).1, None);
    let many = format!("{}\r\n", "x ".repeat(65));
    assert_eq!(read(&[many.as_bytes()], &FrameLimits::KNOWN).1, Some(Fault::Words));

    let element = [b"$65536\r\n".as_slice(), &[b'x'; 65536], b"\r\n"].concat();
    let large = [b"*64\r\n".as_slice(), &element.repeat(64)].concat();
    assert_eq!(read(&[&large], &FrameLimits::KNOWN), (Vec::new(), Some(Fault::Command)));
    let within = [b"*15\r\n".as_slice(), &element.repeat(15)].concat();
    assert_eq!(read(&within.chunks(1000).collect::<Vec<_>>(), &FrameLimits::KNOWN).0.len(), 1);
}

#[test]
fn strangers_may_send_little() {
    let read = |text: &str| read(&[text.as_bytes()], &FrameLimits::STRANGER).1;
    assert_eq!(read("*11\r\n"), Some(Fault::Multibulk));
    assert_eq!(read("*1\r\n$16385\r\n"), Some(Fault::Bulk));
    assert_eq!(read("*10\r\n$16384\r\n"), None);
    let long = format!("${}\r\n{}\r\n", 16 << 10, "x".repeat(16 << 10));
    assert_eq!(read(&format!("*2\r\n{long}$4096\r\n")), Some(Fault::Command));
}
