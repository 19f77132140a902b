//! Paths and patterns by definition, without optimisation: the reference for the production code.

use std::fmt::Write;

use tollgate_rules::path::PATH_BYTES_MAX;

/// One byte of a path, and whether it was written as an escape.
type Letter = (u8, bool);

/// The one spelling of a path, or `None` if it is to be refused.
pub(super) fn canonical(raw: &str, keep_slash: bool) -> Option<String> {
    let path = raw.split(['?', '#']).next().unwrap_or_default();
    if path.len() > PATH_BYTES_MAX || !path.starts_with('/') {
        return None;
    }
    let mut kept: Vec<String> = Vec::new();
    for written in path.split('/').skip(1) {
        let segment = spelled(&letters(written)?, keep_slash)?;
        match segment.as_str() {
            "" | "." => {}
            ".." => drop(kept.pop()?),
            _ => kept.push(segment),
        }
    }
    let path = format!("/{}", kept.join("/"));
    (path.len() <= PATH_BYTES_MAX).then_some(path)
}

fn letters(written: &str) -> Option<Vec<Letter>> {
    let mut letters = Vec::new();
    let mut rest = written.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escape = (first == b'%').then(|| after.get(..2));
        match escape {
            None => letters.push((first, false)),
            Some(digits) => {
                let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
                letters.push((u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?, true));
            }
        }
        rest = if escape.is_some() { &after[2..] } else { after };
    }
    Some(letters)
}

fn spelled(letters: &[Letter], keep_slash: bool) -> Option<String> {
    let plain: Vec<u8> = letters.iter().map(|(byte, _)| *byte).collect();
    let text = String::from_utf8(plain).ok()?;
    if text.contains(char::is_control) || (!keep_slash && text.contains(['/', '\\'])) {
        return None;
    }
    let mut segment = String::new();
    for &(byte, escaped) in letters {
        let letter = char::from(byte);
        if is_plain(letter) || (!escaped && letter == ';') {
            segment.push(letter);
        } else {
            write!(segment, "%{byte:02X}").ok()?;
        }
    }
    Some(segment)
}

/// Whether a letter is written as itself in the one spelling of a path.
pub(super) fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-._~!$&'()+,=:@".contains(letter)
}

/// A path and an optional method, or `None` if they are to be refused.
pub(super) fn endpoint(text: &str, keep_slash: bool) -> Option<(Option<&str>, String)> {
    let (method, path) = match text.find(' ') {
        Some(end) if !text.starts_with('/') => (Some(&text[..end]), text[end..].trim_start_matches(' ')),
        _ => (None, text),
    };
    let is_method = |word: &str| {
        !word.is_empty()
            && word.len() <= 32
            && !word.contains(|c: char| !c.is_ascii_uppercase() && c != '-' && c != '_')
    };
    if method.is_some_and(|method| !is_method(method)) {
        return None;
    }
    Some((method, canonical(path, keep_slash)?))
}

/// A piece of a pattern.
enum Token {
    /// Exactly this byte.
    Byte(u8),
    /// Any text.
    Star,
    /// One whole segment.
    Segment,
}

/// Whether text has the form of a pattern in which `*` stands for any text.
pub(super) fn has_form(pattern: &str, text: &str) -> bool {
    let tokens = pattern.bytes().map(|byte| if byte == b'*' { Token::Star } else { Token::Byte(byte) });
    fits(&tokens.collect::<Vec<_>>(), text.as_bytes())
}

/// Whether a canonical path has the form of a canonical path pattern, where `{name}` stands for one segment.
pub(super) fn path_has_form(pattern: &str, path: &str, folds_case: bool) -> bool {
    if pattern == "*" {
        return true;
    }
    let bare = |text: &str| if text == "/" { String::new() } else { fold(text, folds_case) };
    let (pattern, path) = (bare(pattern), bare(path));
    let fits = |pattern: &str| fits(&tokens_of_path(pattern), path.as_bytes());
    // `/a/` is spelled `/a`, so what covers all below `/a` covers `/a` too.
    fits(&pattern) || pattern.strip_suffix("/*").is_some_and(fits)
}

fn fold(text: &str, folds_case: bool) -> String {
    if folds_case { text.to_ascii_lowercase() } else { text.to_owned() }
}

fn tokens_of_path(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = pattern.bytes();
    while let Some(byte) = rest.next() {
        tokens.push(match byte {
            b'*' => Token::Star,
            b'{' => {
                rest.find(|byte| *byte == b'}');
                Token::Segment
            }
            _ => Token::Byte(byte),
        });
    }
    tokens
}

/// Follows all alternatives at once: the positions in the text that each token can end at.
fn fits(tokens: &[Token], text: &[u8]) -> bool {
    let mut places = vec![false; text.len() + 1];
    places[0] = true;
    for token in tokens {
        let mut next = vec![false; text.len() + 1];
        for at in (0..=text.len()).filter(|at| places[*at]) {
            match token {
                Token::Byte(byte) if text.get(at) == Some(byte) => next[at + 1] = true,
                Token::Byte(_) => {}
                Token::Star => {
                    next[at..].fill(true);
                    break;
                }
                Token::Segment => {
                    let length = text[at..].iter().position(|byte| *byte == b'/').unwrap_or(text.len() - at);
                    if length > 0 {
                        next[at + length] = true;
                    }
                }
            }
        }
        places = next;
    }
    places[text.len()]
}
