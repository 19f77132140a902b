//! Bucket keys: `api_key`, `[api_key, endpoint]`, `"user_id:endpoint"`, `"api_key|ip"`.

use crate::problem::{ParseError, quote};

/// Built-in attributes; any other name is a custom attribute.
pub const KNOWN_ATTRIBUTES: [&str; 11] =
    ["client_key", "api_key", "user_id", "ip", "org", "plan", "tier", "endpoint", "method", "path", "namespace"];

/// Parts of a bucket key. Each part is a list of attributes, of which the first one present is used; no part means
/// `global`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyBy {
    /// The parts; all of them together are the key.
    pub parts: Vec<Vec<String>>,
}

impl KeyBy {
    /// Largest number of parts, and of alternatives in a part.
    pub const PARTS_MAX: usize = 8;

    /// One bucket for all requests.
    pub fn global() -> Self {
        Self::default()
    }

    /// One bucket for each client: the default.
    pub fn client() -> Self {
        Self { parts: vec![vec!["client_key".to_owned()]] }
    }

    /// Whether all requests share one bucket.
    pub fn is_global(&self) -> bool {
        self.parts.is_empty()
    }

    /// Reads the text form: parts joined by `:`, alternatives by `|`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if text == "global" {
            return Ok(Self::global());
        }
        Self::from_parts(text.split(':'))
    }

    /// Reads a list of parts, alternatives joined by `|`.
    pub fn from_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> Result<Self, ParseError> {
        let mut key = Self::default();
        for text in parts {
            let part = alternatives(text)?;
            if let Some(twice) = key.parts.iter().find(|other| **other == part) {
                return Err(ParseError::new(
                    format!("{} is named twice", quote(&twice.join("|"))),
                    "name every key part once",
                ));
            }
            key.parts.push(part);
        }
        match key.parts.len() {
            0 => Err(ParseError::new(
                "the key has no part",
                "name an attribute, or write `global` for one bucket for all",
            )),
            count if count > Self::PARTS_MAX => {
                Err(ParseError::new(format!("the key has {count} parts"), format!("use at most {}", Self::PARTS_MAX)))
            }
            _ => Ok(key),
        }
    }
}

impl std::fmt::Display for KeyBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_global() {
            return f.write_str("global");
        }
        for (index, part) in self.parts.iter().enumerate() {
            let colon = if index == 0 { "" } else { ":" };
            write!(f, "{colon}{}", part.join("|"))?;
        }
        Ok(())
    }
}

/// Whether a name is valid for an attribute: `[a-z][a-z0-9_.-]{0,63}`.
pub fn is_attribute(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name.len() <= 64
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-'))
}

/// The error for a name that [`is_attribute`] rejects.
pub(crate) fn attribute_fault(name: &str) -> ParseError {
    let lower = name.trim().to_lowercase().replace(' ', "_");
    let help = "an attribute is a lower-case letter, then up to 63 of a-z, 0-9, `_`, `.`, `-`";
    let help = match is_attribute(&lower) {
        true => format!("did you mean `{lower}`? {help}"),
        false => help.to_owned(),
    };
    ParseError::new(format!("{} is not the name of an attribute", quote(name)), help)
}

fn alternatives(text: &str) -> Result<Vec<String>, ParseError> {
    let mut part: Vec<String> = Vec::new();
    for name in text.split('|') {
        if name == "global" {
            return Err(ParseError::new("`global` stands among other key parts", "write `key_by: global` alone"));
        }
        if !is_attribute(name) {
            return Err(attribute_fault(name));
        }
        if part.iter().any(|other| other == name) {
            return Err(ParseError::new(format!("{} is named twice", quote(name)), "name every alternative once"));
        }
        part.push(name.to_owned());
    }
    if part.len() > KeyBy::PARTS_MAX {
        return Err(ParseError::new(
            "a key part has too many alternatives",
            format!("use at most {}", KeyBy::PARTS_MAX),
        ));
    }
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form() {
        let parts = |text| KeyBy::parse(text).map(|key| key.parts);
        assert_eq!(parts("api_key"), Ok(vec![vec!["api_key".to_owned()]]));
        assert_eq!(parts("user_id:endpoint"), KeyBy::from_parts(["user_id", "endpoint"]).map(|key| key.parts));
        assert_eq!(parts("api_key|ip"), Ok(vec![vec!["api_key".to_owned(), "ip".to_owned()]]));
        assert_eq!(parts("global"), Ok(vec![]));
        for text in ["api_key", "user_id:endpoint", "api_key|ip:endpoint", "global"] {
            assert_eq!(KeyBy::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn refuses_what_is_no_key() {
        let long = "a:".repeat(9);
        let cases = [
            ("", "not the name"),
            ("API_KEY", "not the name"),
            ("api key", "not the name"),
            ("a:", "not the name"),
            ("a||b", "not the name"),
            ("a:a", "`a` is named twice"),
            ("a|a", "`a` is named twice"),
            ("global:a", "`global` stands among"),
            ("a:b:c:d:e:f:g:h:i", "has 9 parts"),
            ("9a", "not the name"),
            (long.as_str(), "named twice"),
        ];
        for (text, message) in cases {
            let fault = KeyBy::parse(text).expect_err(text);
            assert!(fault.message.contains(message), "{text}: {fault}");
        }
        assert!(KeyBy::parse("API Key").unwrap_err().help.starts_with("did you mean `api_key`?"));
    }
}
