//! Parses the parts of a certificate that the TLS library does not parse: version 1, or self-signed.
//!
//! Only certificates from the file of trusted ones are parsed here. The result decides when they are valid and which
//! key they hold, never whether they are trusted.

/// The validity of a certificate, and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Certificate<'a> {
    /// Seconds since 1970.
    pub(super) not_before: u64,
    /// Seconds since 1970.
    pub(super) not_after: u64,
    /// The key, as a `SubjectPublicKeyInfo`.
    pub(super) key: &'a [u8],
}

/// The object identifier of subject alternative names.
const SUBJECT_ALT_NAME: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x11];

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

impl<'a> Certificate<'a> {
    /// Parses a certificate; `None` if it is malformed.
    pub(super) fn read(der: &'a [u8]) -> Option<Certificate<'a>> {
        let (whole, _) = Element::read(der)?;
        let (signed, _) = Element::read(whole.inside(SEQUENCE)?)?;
        let mut rest = signed.inside(SEQUENCE)?;
        let mut next = || {
            let (element, after) = Element::read(rest)?;
            rest = after;
            Some(element)
        };
        let mut element = next()?;
        if element.tag == VERSION {
            element = next()?; // the serial number
        }
        let (_algorithm, _issuer, validity, _subject, key) = (next()?, next()?, next()?, next()?, next()?);
        let _ = element;
        let (not_before, after) = Element::read(validity.inside(SEQUENCE)?)?;
        let (not_after, _) = Element::read(after)?;
        Some(Certificate { not_before: not_before.time()?, not_after: not_after.time()?, key: key.whole })
    }

    /// True if it is valid at this time.
    pub(super) fn is_valid(&self, seconds: u64) -> bool {
        (self.not_before..=self.not_after).contains(&seconds)
    }
}

/// True if the certificate has subject alternative names; older ones only have a common name.
pub(super) fn names_hosts(der: &[u8]) -> bool {
    der.windows(SUBJECT_ALT_NAME.len()).any(|window| window == SUBJECT_ALT_NAME)
}

/// One element of DER.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    whole: &'a [u8],
}

impl<'a> Element<'a> {
    /// The first element, and what follows it.
    fn read(der: &'a [u8]) -> Option<(Element<'a>, &'a [u8])> {
        let (tag, first) = (*der.first()?, *der.get(1)?);
        let (length, head) = match first {
            ..=0x7f => (usize::from(first), 2),
            0x81..=0x84 => {
                let bytes = der.get(2..2 + usize::from(first - 0x80))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), 2 + bytes.len())
            }
            _ => return None,
        };
        let whole = der.get(..head.checked_add(length)?)?;
        Some((Element { tag, content: whole.get(head..)?, whole }, der.get(whole.len()..)?))
    }

    fn inside(&self, tag: u8) -> Option<&'a [u8]> {
        (self.tag == tag).then_some(self.content)
    }

    /// `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`, in seconds since 1970.
    fn time(&self) -> Option<u64> {
        let digits = self.content.strip_suffix(b"Z").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        let number = |digits: &[u8]| digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
        let (year, rest) = match (self.tag, digits.len()) {
            (UTC_TIME, 12) => {
                let (year, rest) = digits.split_at_checked(2)?;
                let year = number(year);
                (if year < 50 { 2000 + year } else { 1900 + year }, rest)
            }
            (GENERALIZED_TIME, 14) => {
                let (year, rest) = digits.split_at_checked(4)?;
                (number(year), rest)
            }
            _ => return None,
        };
        let [month, day, hour, minute, second] =
            std::array::from_fn(|place| number(rest.get(2 * place..2 * place + 2).unwrap_or(&[])));
        Some(days(year, month, day)? * 86_400 + hour * 3600 + minute * 60 + second)
    }
}

/// Days since 1970 of a Gregorian date; `None` before.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March, so that the odd day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    days.checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_from_1970() {
        let time = |tag, content| Element { tag, content, whole: &[] }.time();
        assert_eq!(time(UTC_TIME, b"700101000000Z"), Some(0));
        assert_eq!(time(UTC_TIME, b"000301000001Z"), Some(951_868_801));
        assert_eq!(time(GENERALIZED_TIME, b"20380119031408Z"), Some(1 << 31));
        assert_eq!(time(UTC_TIME, b"701301000000Z"), None);
        assert_eq!(time(UTC_TIME, b"7001010000Z"), None);
        assert_eq!(time(GENERALIZED_TIME, b"19600101000000Z"), None);
    }

    #[test]
    fn malformed_certificates_are_refused() {
        for der in [&b""[..], b"\x30", b"\x30\x84\xff\xff\xff\xff", b"\x30\x03\x30\x01\x02", b"\x30\x80"] {
            assert_eq!(Certificate::read(der), None);
        }
    }
}
