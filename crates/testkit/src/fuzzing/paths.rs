//! Paths, endpoints and the patterns that match them.

use tollgate_rules::path::{Endpoint, EscapedSlash, PATH_BYTES_MAX, PathCase, canonical_path};
use tollgate_rules::{EndpointPattern, PathPattern, Pattern};

use super::spelling;

/// Letters of pattern times letters of text up to which the simple matcher is fast enough.
const COMPARED_MAX: usize = 1 << 13;

/// Three lines: a path, a pattern, and bytes that choose another spelling of the path.
pub fn paths(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (path, pattern, choices) = (line(), line(), line());
    for mode in [EscapedSlash::Reject, EscapedSlash::Keep] {
        let canonical = check_path(path, mode, choices.as_bytes());
        check_endpoint(path, mode);
        for case in [PathCase::Sensitive, PathCase::Insensitive] {
            check_pattern(pattern, canonical.as_deref(), mode, case);
        }
    }
    check_value_pattern(pattern, path);
}

fn check_path(raw: &str, mode: EscapedSlash, choices: &[u8]) -> Option<String> {
    let found = canonical_path(raw, mode);
    let expected = spelling::canonical(raw, mode == EscapedSlash::Keep);
    assert_eq!(found.as_deref().ok(), expected.as_deref(), "{raw:?} in mode {mode:?}: {found:?}");
    let canonical = expected?;
    assert_eq!(canonical_path(&canonical, mode).as_deref(), Ok(&*canonical), "twice is once");
    check_form(&canonical, mode);
    let other = respelled(&canonical, choices);
    if other.len() <= PATH_BYTES_MAX {
        assert_eq!(canonical_path(&other, mode).as_deref(), Ok(&*canonical), "{other:?} is another spelling");
    }
    Some(canonical)
}

/// Checks the form of a canonical path.
fn check_form(path: &str, mode: EscapedSlash) {
    assert!(path.starts_with('/') && path.len() <= PATH_BYTES_MAX, "{path:?}");
    assert!(path == "/" || !path.ends_with('/'), "{path:?}");
    assert!(path.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\?#{}\"<>^`|*".contains(&byte)), "{path:?}");
    let mut segments = path.split('/').skip(1);
    assert!(path == "/" || segments.all(|segment| !["", ".", ".."].contains(&segment)), "{path:?}");
    for escape in path.split('%').skip(1) {
        let digits = escape.get(..2).unwrap_or_default();
        let byte = u8::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("{path:?} has a broken escape"));
        assert_eq!(digits, digits.to_ascii_uppercase(), "{path:?}");
        assert!(!spelling::is_plain(char::from(byte)) && !byte.is_ascii_control(), "{path:?}");
        assert!(mode == EscapedSlash::Keep || !b"/\\".contains(&byte), "{path:?}");
    }
}

/// Another spelling of a canonical path: escapes that change nothing, and segments that cancel out.
fn respelled(path: &str, choices: &[u8]) -> String {
    let mut choices = choices.iter().copied().cycle();
    let mut choose = |count: u8| choices.next().unwrap_or(0) % count;
    let mut written = String::new();
    let mut escape = 0; // letters left of an escape, whose case may change
    let mut skipped = 0; // letters left of an escape that was undone
    for (at, letter) in path.char_indices() {
        let byte = letter as u32;
        if skipped > 0 {
            skipped -= 1;
        } else if path[at..].starts_with("%2A") && choose(2) == 0 {
            written.push('*');
            skipped = 2;
        } else if escape > 0 {
            escape -= 1;
            written.push(if choose(2) == 0 { letter } else { letter.to_ascii_lowercase() });
        } else if letter == '/' {
            written.push_str(["/", "//", "/./", "/x/../", "/%2e/", "/%41/b/.%2E//%2e%2E/"][usize::from(choose(6))]);
        } else if spelling::is_plain(letter) {
            match choose(3) {
                0 => written.push(letter),
                1 => written.push_str(&format!("%{byte:02x}")),
                _ => written.push_str(&format!("%{byte:02X}")),
            }
        } else {
            escape = if letter == '%' { 2 } else { 0 };
            written.push(letter);
        }
    }
    written.push_str(["", "/", "/.", "//", "/y/..", "?a/../b", "#%"][usize::from(choose(7))]);
    written
}

fn check_endpoint(text: &str, mode: EscapedSlash) {
    let found = Endpoint::parse(text, mode);
    let expected = spelling::endpoint(text, mode == EscapedSlash::Keep);
    let parts = found.as_ref().ok().map(|endpoint| (endpoint.method, endpoint.path.to_string()));
    assert_eq!(parts, expected, "{text:?}");
}

fn check_pattern(text: &str, path: Option<&str>, mode: EscapedSlash, case: PathCase) {
    let pattern = match EndpointPattern::parse(text, mode, case) {
        Ok(pattern) => pattern,
        Err(fault) => return assert!(!fault.message.is_empty() && !fault.help.is_empty()),
    };
    let shown = pattern.to_string();
    if shown.len() <= PathPattern::BYTES_MAX {
        assert_eq!(EndpointPattern::parse(&shown, mode, case).as_ref(), Ok(&pattern), "{text:?} shown as {shown:?}");
    }
    let form = pattern.path.as_str();
    // The simplest path of that form.
    let simplest = form.replace('*', "").replace(['{', '}'], "x");
    let simplest = spelling::canonical(&format!("/{simplest}"), mode == EscapedSlash::Keep);
    for path in path.into_iter().chain(simplest.as_deref()) {
        if form.len() * path.len() > COMPARED_MAX {
            pattern.path.matches(path);
            continue;
        }
        let expected = spelling::path_has_form(form, path, case == PathCase::Insensitive);
        assert_eq!(pattern.path.matches(path), expected, "{form:?} and {path:?}, {case:?}");
        assert_eq!(pattern.matches(None, path), expected, "a request without method meets every method");
        assert_eq!(pattern.matches(Some("GET"), path), expected && pattern.has_method("GET"));
        check_template(&pattern, path, expected);
    }
}

/// A template names as many segments as the path has, and stays the same for the paths it names.
fn check_template(pattern: &EndpointPattern, path: &str, matches: bool) {
    if !matches {
        return;
    }
    let template = pattern.path.template_of(path);
    let segments = |path: &str| path.split('/').filter(|segment| !segment.is_empty()).count();
    assert_eq!(segments(&template), segments(path), "{template:?} of {path:?}");
    let parameters = template.matches('{').count();
    assert!(parameters <= pattern.path.segments.len(), "{template:?} of {path:?}");
    assert!(
        parameters > 0 || pattern.path.case == PathCase::Insensitive || *template == *path,
        "{template:?} of {path:?}"
    );
}

fn check_value_pattern(text: &str, value: &str) {
    let pattern = match Pattern::parse(text) {
        Ok(pattern) => pattern,
        Err(fault) => return assert!(text.is_empty() || text.len() > Pattern::BYTES_MAX, "{text:?}: {fault}"),
    };
    assert_eq!(Pattern::parse(&pattern.to_string()).as_ref(), Ok(&pattern), "{text:?}");
    let simplest = text.replace('*', "");
    for value in [value, &simplest].into_iter().filter(|value| text.len() * value.len() <= COMPARED_MAX) {
        assert_eq!(pattern.matches(value), spelling::has_form(text, value), "{text:?} and {value:?}");
    }
}
