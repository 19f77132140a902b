//! Parses values, the same for flags, environment and file. An error names what was found and what is allowed.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use tollgate_net::Address;
use tollgate_rules::problem::{ParseError, quote};
use tollgate_rules::{duration as span, nearest};

use crate::bytes;

/// The word that turns a setting off.
pub const OFF: &str = "off";

/// Longest path; systems accept no more.
const PATH_BYTES_MAX: usize = 4096;
/// Longest name of a node.
const NAME_BYTES_MAX: usize = 64;

pub fn unless_off<T>(text: &str, parse: impl FnOnce(&str) -> Result<T, ParseError>) -> Result<Option<T>, ParseError> {
    if text == OFF { Ok(None) } else { parse(text).map(Some) }
}

pub fn addresses(texts: &[&str]) -> Result<Vec<Address>, ParseError> {
    pieces_unless_off(texts).map(str::parse).collect()
}

pub fn path(text: &str) -> Result<PathBuf, ParseError> {
    if text.is_empty() || text.contains('\0') {
        return Err(ParseError::new(format!("{} is not the name of a file", quote(text)), "write the path of a file"));
    }
    if text.len() > PATH_BYTES_MAX {
        let help = format!("a path has at most {PATH_BYTES_MAX} bytes");
        return Err(ParseError::new(format!("{} is too long", quote(text)), help));
    }
    Ok(PathBuf::from(text))
}

pub fn sink(text: &str) -> Result<String, ParseError> {
    path(text).map(|_| text.to_owned())
}

pub fn name(text: &str) -> Result<String, ParseError> {
    let fits = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    match fits {
        true => Ok(text.to_owned()),
        false => {
            let help = format!("a name has 1 to {NAME_BYTES_MAX} letters, digits and signs, and no spaces");
            Err(ParseError::new(format!("{} is not a name", quote(text)), help))
        }
    }
}

pub fn switch(text: &str) -> Result<bool, ParseError> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(ParseError::new(format!("{} is neither true nor false", quote(text)), "write `true` or `false`")),
    }
}

pub fn duration(text: &str, range: &RangeInclusive<Duration>) -> Result<Duration, ParseError> {
    let value = Duration::from_nanos(span::parse(text)?);
    let show = |bound: &Duration| span::display(nanoseconds(*bound));
    within(value, range, text, show)
}

pub fn number(text: &str, range: &RangeInclusive<usize>) -> Result<usize, ParseError> {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(text) || (text.len() > 1 && text.starts_with('0')) {
        let plain = text.replace(['_', ',', ' ', '\''], "");
        let plain = plain.trim_start_matches('0');
        let meant =
            if is_digits(plain) && plain.len() < 20 { format!("did you mean {plain}? ") } else { String::new() };
        let help = format!("{meant}write a whole number in digits, from {} to {}", range.start(), range.end());
        return Err(ParseError::new(format!("{} is not a number", quote(text)), help));
    }
    within(text.parse().unwrap_or(usize::MAX), range, text, usize::to_string)
}

/// `0660`, with or without the zero.
pub fn mode(text: &str) -> Result<u32, ParseError> {
    let digits = text.strip_prefix('0').unwrap_or(text);
    let is_mode = digits.len() == 3 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let mode = u32::from_str_radix(digits, 8).ok().filter(|_| is_mode);
    mode.ok_or_else(|| {
        ParseError::new(format!("{} is not a mode", quote(text)), "write three octal digits such as 0660")
    })
}

pub fn size(text: &str, range: &RangeInclusive<u64>) -> Result<u64, ParseError> {
    within(bytes::parse(text)?, range, text, |bound| bytes::display(*bound))
}

/// The word, if it is one of `words`.
pub fn word<'a>(text: &'a str, words: &[&str]) -> Result<&'a str, ParseError> {
    if words.contains(&text) {
        return Ok(text);
    }
    let allowed = words.join(", ");
    let help = match nearest(text, words.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`? allowed: {allowed}"),
        None => format!("allowed: {allowed}"),
    };
    Err(ParseError::new(format!("{} is not known", quote(text)), help))
}

/// Words joined by commas; `off` only alone, and none twice.
pub fn words(texts: &[&str], allowed: &[&str]) -> Result<String, ParseError> {
    let mut found: Vec<&str> = Vec::new();
    for piece in pieces(texts) {
        let piece = word(piece, allowed)?;
        if found.contains(&piece) {
            return Err(ParseError::new(format!("{} is named twice", quote(piece)), "name each one once"));
        }
        found.push(piece);
    }
    match found.len() > 1 && found.contains(&OFF) {
        true => Err(ParseError::new("`off` is named with others", "write `off` alone, or leave it out")),
        false => Ok(found.join(",")),
    }
}

/// `off`, a whole percentage from 1% to 100%, or a duration up to an hour.
pub fn jitter(text: &str) -> Result<String, ParseError> {
    const HELP: &str = "write off, a percentage from 1% to 100%, or a duration such as 5s";
    if let Some(percent) = text.strip_suffix('%') {
        number(percent, &(1..=100)).map_err(|_| ParseError::new(format!("{} is out of range", quote(text)), HELP))?;
    } else if text != OFF {
        let bounds = Duration::from_millis(1)..=Duration::from_secs(3600);
        duration(text, &bounds).map_err(|fault| ParseError::new(fault.message, HELP))?;
    }
    Ok(text.to_owned())
}

pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The items of all texts, split at commas.
pub fn pieces<'a>(texts: &[&'a str]) -> impl Iterator<Item = &'a str> {
    texts.iter().flat_map(|text| text.split(',')).map(str::trim)
}

/// The same; none if the only text is `off`.
pub fn pieces_unless_off<'a>(texts: &[&'a str]) -> impl Iterator<Item = &'a str> {
    let texts = if texts == [OFF] { Vec::new() } else { texts.to_vec() };
    texts.into_iter().flat_map(|text| text.split(',')).map(str::trim)
}

fn within<T: PartialOrd>(
    value: T,
    range: &RangeInclusive<T>,
    text: &str,
    show: impl Fn(&T) -> String,
) -> Result<T, ParseError> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (low, high) = (show(range.start()), show(range.end()));
    let is_zero = text.bytes().filter(u8::is_ascii_digit).all(|digit| digit == b'0');
    let message = match is_zero {
        true => format!("{} is zero, and must be more", quote(text)),
        false => format!("{} is out of range", quote(text)),
    };
    Err(ParseError::new(message, format!("allowed: {low} to {high}")))
}
