//! Canonical paths: `/login`, `//login` and `/%6Cogin` match the same rule and charge the same bucket.
//!
//! RFC 3986 normalisation, and beyond it one spelling of every character that may stand in a segment: nearly all servers
//! undo all escapes, so `/users/%40me` is `/users/@me` (decision 240). A path that servers could read
//! differently is rejected (RELIABILITY 3.4). Therefore `..` above the root is an error: honest clients do not send it,
//! and servers disagree on whether to clamp it. The result is idempotent, and borrowed if nothing changes.

use std::borrow::Cow;
use std::fmt;

/// Treatment of `%2F`, `%5C` and `\` in a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EscapedSlash {
    /// Keep them as escapes within a segment.
    Keep,
    /// Reject the request: upstreams disagree on their meaning.
    #[default]
    Reject,
}

/// Case sensitivity of paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PathCase {
    /// `/Login` is not `/login`.
    #[default]
    Sensitive,
    /// ASCII letters compare equal in either case.
    Insensitive,
}

/// Why a path or an endpoint is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathError {
    /// Longer than [`PATH_BYTES_MAX`].
    TooLong,
    /// Does not start with `/`.
    NotAbsolute,
    /// Has `%2F`, `%5C` or a backslash.
    EscapedSlash,
    /// Has a `%` that is not followed by two hexadecimal digits.
    BadEscape,
    /// Has a control character, plain or escaped.
    Control,
    /// Is not UTF-8 once decoded.
    NotUtf8,
    /// Climbs above the root with `..`.
    AboveRoot,
    /// Has a `.` or `..` segment, where a router may take it for a name ([`has_dot_segment`]).
    DotSegment,
    /// Has a `;`, which begins a parameter for some servers.
    Parameter,
    /// The word before the path is not a method.
    BadMethod,
}

/// Whether a segment is `.` or `..`, escaped or not. A canonical path has none of them; a router that does not resolve
/// them takes them for names, or for what a wildcard stands for, and such a request is for another handler than its
/// canonical path says.
pub fn has_dot_segment(path: &str) -> bool {
    path.split('/').any(|segment| {
        // Most segments have no dot and no escape of one.
        let may_be = matches!(segment.as_bytes().first(), Some(b'.' | b'%')) && segment.len() <= 6;
        may_be && matches!(segment.replace("%2e", ".").replace("%2E", ".").as_str(), "." | "..")
    })
}

impl PathError {
    /// Stable name, for machines.
    pub fn code(self) -> &'static str {
        match self {
            Self::TooLong => "path_too_long",
            Self::NotAbsolute => "path_not_absolute",
            Self::EscapedSlash => "path_escaped_slash",
            Self::BadEscape => "path_bad_escape",
            Self::Control => "path_control_character",
            Self::NotUtf8 => "path_not_utf8",
            Self::AboveRoot => "path_above_root",
            Self::DotSegment => "path_dot_segment",
            Self::Parameter => "path_parameter",
            Self::BadMethod => "bad_method",
        }
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the path is longer than 8192 bytes",
            Self::NotAbsolute => "the path does not start with `/`",
            Self::DotSegment => "the path has a dot segment, which servers read differently",
            Self::Parameter => "the path has a `;`, which servers read differently",
            Self::EscapedSlash => "the path has an escaped slash or a backslash, which servers read differently",
            Self::BadEscape => "the path has a `%` without two hexadecimal digits",
            Self::Control => "the path has a control character",
            Self::NotUtf8 => "the path is not UTF-8 once decoded",
            Self::AboveRoot => "the path climbs above the root with `..`",
            Self::BadMethod => "the method is not a word of capital letters",
        })
    }
}

impl std::error::Error for PathError {}

/// Longest path accepted, before and after normalisation.
pub const PATH_BYTES_MAX: usize = 8192;

/// Longest method accepted.
pub const METHOD_BYTES_MAX: usize = 32;

/// The canonical form of a request path; query and fragment are cut.
pub fn canonical_path(raw: &str, escaped_slash: EscapedSlash) -> Result<Cow<'_, str>, PathError> {
    canonical(raw, escaped_slash, PathReader::Rules)
}

/// The canonical form for a server: `+` and `*` stay as the caller wrote them.
pub fn forwarded_path(raw: &str, escaped_slash: EscapedSlash) -> Result<Cow<'_, str>, PathError> {
    canonical(raw, escaped_slash, PathReader::Server)
}

/// The canonical form of a pattern for paths, in which `*` stays as it is: a star that is meant is written `%2A`.
pub(crate) fn canonical_pattern(raw: &str, escaped_slash: EscapedSlash) -> Result<Cow<'_, str>, PathError> {
    canonical(raw, escaped_slash, PathReader::Pattern)
}

/// Where a canonical path is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PathReader {
    /// By rules and routes, as the path of a request.
    Rules,
    /// By rules and routes, as a pattern.
    Pattern,
    /// By the server behind the gateway.
    Server,
}

fn canonical(raw: &str, escaped_slash: EscapedSlash, reader: PathReader) -> Result<Cow<'_, str>, PathError> {
    if is_plain(raw.as_bytes()) && raw.len() <= PATH_BYTES_MAX {
        return Ok(Cow::Borrowed(raw));
    }
    let path = raw.find(['?', '#']).and_then(|end| raw.get(..end)).unwrap_or(raw);
    if path.len() > PATH_BYTES_MAX {
        return Err(PathError::TooLong);
    }
    if !path.starts_with('/') {
        return Err(PathError::NotAbsolute);
    }
    if is_canonical(path.as_bytes(), escaped_slash, reader) {
        return Ok(Cow::Borrowed(path));
    }
    let canonical = rewrite(path, escaped_slash, reader)?;
    if canonical.len() > PATH_BYTES_MAX {
        return Err(PathError::TooLong);
    }
    Ok(Cow::Owned(canonical))
}

/// The endpoint of a request: an optional method and a canonical path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint<'a> {
    /// The method, if the caller sent one.
    pub method: Option<&'a str>,
    /// The canonical path.
    pub path: Cow<'a, str>,
}

impl<'a> Endpoint<'a> {
    /// Reads `POST /api/x` or `/api/x`.
    pub fn parse(text: &'a str, escaped_slash: EscapedSlash) -> Result<Self, PathError> {
        let (method, path) = match split_at_space(text) {
            Some((method, path)) if !text.starts_with('/') => (Some(method), path.trim_start_matches(' ')),
            _ => (None, text),
        };
        if method.is_some_and(|method| !is_method(method)) {
            return Err(PathError::BadMethod);
        }
        Ok(Self { method, path: canonical_path(path, escaped_slash)? })
    }
}

/// `text.split_once(' ')`, byte by byte: faster for a short method.
fn split_at_space(text: &str) -> Option<(&str, &str)> {
    let space = text.bytes().position(|byte| byte == b' ')?;
    Some((text.get(..space)?, text.get(space + 1..)?))
}

/// Whether a word can be a method: capital letters, `-` and `_`.
pub fn is_method(word: &str) -> bool {
    (1..=METHOD_BYTES_MAX).contains(&word.len()) && word.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'-' | b'_'))
}

/// Whether the path consists of `/` and words of letters, digits, `-`, `_` and `~`. Nearly all do, and need no further
/// check.
fn is_plain(path: &[u8]) -> bool {
    let mut after_slash = false;
    let plain = path.iter().all(|byte| {
        let slash = *byte == b'/';
        let goes_on = (slash && !after_slash) || PLAIN.get(usize::from(*byte)).is_some_and(|plain| *plain);
        after_slash = slash;
        goes_on
    });
    plain && path.first() == Some(&b'/') && (!after_slash || path.len() == 1)
}

/// Whether the path is canonical. May be `false` for a canonical path with escapes beyond ASCII, which [`rewrite`] then
/// leaves unchanged.
fn is_canonical(path: &[u8], escaped_slash: EscapedSlash, reader: PathReader) -> bool {
    let mut rest = path.iter();
    // Bytes since the last slash, and whether all of them are dots.
    let (mut length, mut dots) = (0_usize, true);
    while let Some(&byte) = rest.next() {
        match byte {
            b'/' => {
                let first = rest.len() + 1 == path.len();
                if !first && (length == 0 || (dots && length <= 2)) {
                    return false;
                }
                (length, dots) = (0, true);
                continue;
            }
            b'%' => {
                let (Some(&high), Some(&low)) = (rest.next(), rest.next()) else { return false };
                let upper = |digit: u8| matches!(digit, b'0'..=b'9' | b'A'..=b'F');
                let kept = upper(high)
                    && upper(low)
                    && unescape(high, low).is_some_and(|byte| stays(byte, escaped_slash, reader));
                if !kept {
                    return false;
                }
                dots = false;
            }
            b'.' => {}
            _ if spelling_of(byte, reader) != ByteSpelling::Escaped => dots = false,
            _ => return false,
        }
        length += 1;
    }
    path.len() == 1 || !(length == 0 || (dots && length <= 2))
}

/// Whether an escaped ASCII byte stays escaped.
fn stays(byte: u8, escaped_slash: EscapedSlash, reader: PathReader) -> bool {
    match byte {
        b'/' | b'\\' => escaped_slash == EscapedSlash::Keep,
        _ => matches!(byte, 0x20..=0x7e) && spelling_of(byte, reader) != ByteSpelling::Plain,
    }
}

fn rewrite(path: &str, escaped_slash: EscapedSlash, reader: PathReader) -> Result<String, PathError> {
    let mut canonical = String::with_capacity(path.len() + 8);
    for raw in path.split('/') {
        let segment = rewrite_segment(raw, escaped_slash, reader)?;
        match segment.as_str() {
            "" | "." => {}
            ".." => {
                let parent = canonical.rfind('/').ok_or(PathError::AboveRoot)?;
                canonical.truncate(parent);
            }
            _ => {
                canonical.push('/');
                canonical.push_str(&segment);
            }
        }
    }
    if canonical.is_empty() {
        canonical.push('/');
    }
    Ok(canonical)
}

fn rewrite_segment(raw: &str, escaped_slash: EscapedSlash, reader: PathReader) -> Result<String, PathError> {
    let mut segment = String::with_capacity(raw.len());
    let mut decoded = Vec::with_capacity(raw.len());
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        let (byte, escaped) = match byte {
            b'%' => {
                let (high, low) = bytes.next().zip(bytes.next()).ok_or(PathError::BadEscape)?;
                (unescape(high, low).ok_or(PathError::BadEscape)?, true)
            }
            _ => (byte, false),
        };
        decoded.push(byte);
        let slash = byte == b'\\' || (byte == b'/' && escaped);
        if slash && escaped_slash == EscapedSlash::Reject {
            return Err(PathError::EscapedSlash);
        }
        let stays_plain = match spelling_of(byte, reader) {
            ByteSpelling::Plain => true,
            ByteSpelling::AsWritten => !escaped,
            ByteSpelling::Escaped => false,
        };
        if stays_plain {
            segment.push(char::from(byte));
        } else {
            segment.push('%');
            segment.extend(
                [byte >> 4, byte & 15]
                    .map(|digit| char::from_digit(u32::from(digit), 16).unwrap_or('0').to_ascii_uppercase()),
            );
        }
    }
    let decoded = std::str::from_utf8(&decoded).map_err(|_| PathError::NotUtf8)?;
    if decoded.chars().any(char::is_control) {
        return Err(PathError::Control);
    }
    Ok(segment)
}

fn unescape(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

/// Bytes that never need a check: unreserved ones other than the dot.
const PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, within the length")]
        {
            table[byte] = is_unreserved(byte as u8) && byte as u8 != b'.';
        }
        byte += 1;
    }
    table
};

/// RFC 3986, 2.3: equivalent with and without an escape.
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// How a byte is written in a canonical path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteSpelling {
    /// As itself: escapes of it are undone.
    Plain,
    /// As an escape, even if it was not.
    Escaped,
    /// Plain or escaped, as it was: the two may differ in meaning.
    AsWritten,
}

/// The one spelling of a byte. RFC 3986, 3.3 allows more bytes in a segment than the unreserved ones, and servers that
/// undo escapes take both spellings for the same.
fn spelling_of(byte: u8, reader: PathReader) -> ByteSpelling {
    match byte {
        _ if is_unreserved(byte) => ByteSpelling::Plain,
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b',' | b'=' | b':' | b'@' => ByteSpelling::Plain,
        // Begins a parameter, or is a letter.
        b';' => ByteSpelling::AsWritten,
        // One letter for rules. Some servers take the plain one for a space.
        b'+' if reader == PathReader::Server => ByteSpelling::AsWritten,
        b'+' => ByteSpelling::Plain,
        // A wildcard of patterns, so a letter of paths has to be told from it.
        b'*' if reader == PathReader::Rules => ByteSpelling::Escaped,
        b'*' => ByteSpelling::AsWritten,
        _ => ByteSpelling::Escaped,
    }
}

#[cfg(test)]
mod tests;
