//! Inline commands: a line of words, as typed in a terminal. Quotes and escapes are those of redis-cli.

use smallvec::SmallVec;

/// Where an argument begins and ends.
pub(crate) type ArgumentSpan = (u32, u32);

/// A quote is not closed, or a word continues right after its closing quote.
pub(crate) struct Unbalanced;

/// Splits a line into words, appended to `out` without separators.
pub(crate) fn split(line: &[u8], out: &mut Vec<u8>, spans: &mut SmallVec<[ArgumentSpan; 8]>) -> Result<(), Unbalanced> {
    let mut rest = line.trim_ascii();
    while !rest.is_empty() {
        let from = out.len();
        rest = word(rest, out)?.trim_ascii_start();
        spans.push((from as u32, out.len() as u32)); // a line is a few kilobytes
    }
    Ok(())
}

/// Appends the first word and returns the rest. A word is a run of plain bytes, which may end with a quoted part.
fn word<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    loop {
        match rest.split_first() {
            None => return Ok(rest),
            Some((b'"', inner)) => return ended(double(inner, out)?),
            Some((b'\'', inner)) => return ended(single(inner, out)?),
            Some((byte, after)) if byte.is_ascii_whitespace() => return Ok(after),
            Some((byte, after)) => {
                out.push(*byte);
                rest = after;
            }
        }
    }
}

/// A closing quote ends its word.
fn ended(rest: &[u8]) -> Result<&[u8], Unbalanced> {
    match rest.first() {
        Some(byte) if !byte.is_ascii_whitespace() => Err(Unbalanced),
        _ => Ok(rest),
    }
}

fn double<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    loop {
        rest = match rest {
            [b'"', after @ ..] => return Ok(after),
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                out.push(hex(*high) << 4 | hex(*low));
                after
            }
            [b'\\', byte, after @ ..] => {
                out.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                after
            }
            [byte, after @ ..] => {
                out.push(*byte);
                after
            }
            [] => return Err(Unbalanced),
        }
    }
}

fn single<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    loop {
        rest = match rest {
            [b'\\', b'\'', after @ ..] => {
                out.push(b'\'');
                after
            }
            [b'\'', after @ ..] => return Ok(after),
            [byte, after @ ..] => {
                out.push(*byte);
                after
            }
            [] => return Err(Unbalanced),
        }
    }
}

/// The value of a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
