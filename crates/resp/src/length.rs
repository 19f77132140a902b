//! Lines of a mark and a number, `*3\r\n`: read by both parsers, written by both writers.

/// Most digits of a number, its sign included.
const DIGITS_MAX: usize = 20;

/// A line that holds no number.
pub(crate) struct NotANumber;

/// The number at `from` and the position after its line end. `None`: the line has not arrived completely.
#[inline]
pub(crate) fn read(input: &[u8], from: usize) -> Result<Option<(i64, usize)>, NotANumber> {
    let line = input.get(from..).unwrap_or_default();
    let is_negative = line.first() == Some(&b'-');
    let mut value: i64 = 0; // the negated number: i64::MIN has no positive counterpart
    for (place, byte) in line.iter().enumerate().skip(usize::from(is_negative)) {
        match byte {
            b'0'..=b'9' if place < DIGITS_MAX => {
                let digit = i64::from(byte - b'0');
                value = value.checked_mul(10).and_then(|value| value.checked_sub(digit)).ok_or(NotANumber)?;
            }
            b'\r' if place > usize::from(is_negative) => {
                return match line.get(place + 1) {
                    None => Ok(None),
                    Some(b'\n') if is_negative => Ok(Some((value, from + place + 2))),
                    Some(b'\n') => Ok(Some((value.checked_neg().ok_or(NotANumber)?, from + place + 2))),
                    Some(_) => Err(NotANumber),
                };
            }
            _ => return Err(NotANumber),
        }
    }
    Ok(None)
}

/// Appends a mark and a count or length.
#[inline]
pub(crate) fn write(out: &mut Vec<u8>, mark: u8, count: usize) {
    if let digit @ 0..=9 = count {
        return out.extend_from_slice(&[mark, b'0' + digit as u8, b'\r', b'\n']);
    }
    out.push(mark);
    out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_reach_both_ends_of_i64() {
        for number in [i64::MIN, -1, 0, 7, i64::MAX] {
            let line = format!("{number}\r\n");
            assert!(matches!(read(line.as_bytes(), 0), Ok(Some((n, end))) if n == number && end == line.len()));
        }
        for line in ["9223372036854775808\r\n", "-9223372036854775809\r\n", "-\r\n", "\r\n", "+1\r\n", "1\n", "1\rx"] {
            assert!(read(line.as_bytes(), 0).is_err(), "{line:?}");
        }
    }
}
