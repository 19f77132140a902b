//! Sizes as people write them: `64KiB`, `16MiB`, `1GiB`, or plain bytes.
//!
//! `64KB` is refused: it means 64,000 to some and 65,536 to others, and the right spelling is one letter away.

use tollgate_rules::problem::{ParseError, quote};

const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

const ALLOWED: &str = "a size is a whole number of bytes, or of KiB, MiB or GiB, such as 64KiB";

/// Bytes of a size.
pub fn parse(text: &str) -> Result<u64, ParseError> {
    let refuse = |why: &str, help: String| Err(ParseError::new(format!("{} {why}", quote(text)), help));
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    if digits.is_empty() {
        return refuse("is not a size", ALLOWED.to_owned());
    }
    let size = match unit {
        "" | "B" => 1,
        _ => match UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, size)) => *size,
            None => return refuse("has an unknown unit", help(digits, unit)),
        },
    };
    match digits.parse::<u64>().ok().and_then(|number| number.checked_mul(size)) {
        Some(bytes) => Ok(bytes),
        None => refuse("is too large", ALLOWED.to_owned()),
    }
}

/// The text of a size, which [`parse`] reads back: in the largest unit that divides it.
pub fn display(bytes: u64) -> String {
    match UNITS.iter().find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size)) {
        Some((unit, size)) => format!("{}{unit}", bytes / size),
        None => bytes.to_string(),
    }
}

fn help(digits: &str, unit: &str) -> String {
    let letter = unit.trim_start().chars().next().map(|letter| letter.to_ascii_uppercase());
    let meant = UNITS.iter().find(|(name, _)| letter.is_some_and(|letter| name.starts_with(letter)));
    match meant.filter(|_| digits.len() < 20 && unit.len() < 12) {
        Some((name, _)) => format!("did you mean `{digits}{name}`? {ALLOWED}"),
        None => ALLOWED.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_displays() {
        let cases = [
            ("0", 0, "0"),
            ("1000", 1000, "1000"),
            ("1023B", 1023, "1023"),
            ("1024", 1024, "1KiB"),
            ("64KiB", 65_536, "64KiB"),
            ("1536KiB", 1_572_864, "1536KiB"),
            ("1GiB", 1 << 30, "1GiB"),
            ("1024GiB", 1 << 40, "1TiB"),
        ];
        for (text, bytes, shown) in cases {
            assert_eq!(parse(text), Ok(bytes), "{text}");
            assert_eq!((display(bytes).as_str(), parse(shown)), (shown, Ok(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_with_advice() {
        let cases = [
            ("", "is not a size"),
            ("KiB", "is not a size"),
            ("-1", "is not a size"),
            ("64KB", "did you mean `64KiB`?"),
            ("64k", "did you mean `64KiB`?"),
            ("1 GiB", "did you mean `1GiB`?"),
            ("1gib", "did you mean `1GiB`?"),
            ("1.5GiB", "a size is a whole number"),
            ("10 apples", "a size is a whole number"),
            ("99999999999999999999", "is too large"),
            ("99999999999TiB", "is too large"),
        ];
        for (text, words) in cases {
            let fault = parse(text).expect_err(text).to_string();
            assert!(fault.contains(words), "{text}: {fault}");
        }
        assert!(parse(&format!("{}k", "9".repeat(10_000))).unwrap_err().to_string().len() < 300);
    }
}
