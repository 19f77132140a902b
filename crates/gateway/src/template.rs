//! Texts with placeholders, such as `{"error":"{code}"}`: parsed once, and filled for the kind of text that they are.

use std::fmt::Write;

use tollgate_rules::nearest::suggest;
use tollgate_rules::problem::{ParseError, quote};

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(TemplateValue),
}

/// What a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateValue {
    /// `{status}`
    Status,
    /// `{title}`: the name of the status.
    Title,
    /// `{code}`: stable, for programs.
    Code,
    /// `{message}`: for people.
    Message,
    /// `{retry_after}`: whole seconds.
    RetryAfter,
    /// `{rule}`: the rule that refuses.
    Rule,
    /// `{doc_url}`
    DocUrl,
    /// `{decision_id}`
    DecisionId,
}

const VALUES: [(&str, TemplateValue); 8] = [
    ("status", TemplateValue::Status),
    ("title", TemplateValue::Title),
    ("code", TemplateValue::Code),
    ("message", TemplateValue::Message),
    ("retry_after", TemplateValue::RetryAfter),
    ("rule", TemplateValue::Rule),
    ("doc_url", TemplateValue::DocUrl),
    ("decision_id", TemplateValue::DecisionId),
];

/// The kind of text, which decides how values are written into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escaping {
    /// Inside of JSON strings; a number that is not there is `null`.
    Json,
    /// HTML and XML, also in quoted attributes.
    Html,
    /// Parts of a URL.
    Url,
    /// Any other text: without control characters.
    Plain,
}

impl Escaping {
    /// The kind of text of a media type.
    pub fn of(content_type: &str) -> Escaping {
        let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match media.as_str() {
            _ if media.ends_with("json") => Escaping::Json,
            _ if media.ends_with("html") || media.ends_with("xml") => Escaping::Html,
            _ => Escaping::Plain,
        }
    }

    /// A value as it is written into such a text.
    pub(crate) fn escaped(self, value: &str) -> String {
        let mut out = String::with_capacity(value.len());
        self.write(value, &mut out);
        out
    }

    /// Appends a value.
    fn write(self, value: &str, out: &mut String) {
        for character in value.chars() {
            match (self, character) {
                (Escaping::Json, '"' | '\\') => out.extend(['\\', character]),
                (Escaping::Json, _) if character.is_control() => _ = write!(out, "\\u{:04x}", character as u32),
                (Escaping::Html, '<') => out.push_str("&lt;"),
                (Escaping::Html, '>') => out.push_str("&gt;"),
                (Escaping::Html, '&') => out.push_str("&amp;"),
                (Escaping::Html, '"') => out.push_str("&quot;"),
                (Escaping::Html, '\'') => out.push_str("&#39;"),
                (Escaping::Url, _) if character.is_ascii_alphanumeric() || "-._~".contains(character) => {
                    out.push(character);
                }
                (Escaping::Url, _) => {
                    let mut bytes = [0; 4];
                    for byte in character.encode_utf8(&mut bytes).bytes() {
                        let _ = write!(out, "%{byte:02X}"); // a string takes all that is written
                    }
                }
                (Escaping::Html | Escaping::Plain, _) if character.is_control() => out.push(' '),
                _ => out.push(character),
            }
        }
    }
}

impl Template {
    /// Reads a template. A word in braces must be the name of a value; other braces are text, as JSON and CSS have them.
    pub fn parse(text: &str) -> Result<Template, ParseError> {
        let mut parts = Vec::new();
        let mut rest = text;
        let mut literal = String::new();
        while let Some((before, after)) = rest.split_once('{') {
            literal.push_str(before);
            let word = after.split_once('}').filter(|(word, _)| is_word(word));
            let Some((word, behind)) = word else {
                literal.push('{');
                rest = after;
                continue;
            };
            let Some((_, value)) = VALUES.iter().find(|(name, _)| *name == word) else {
                let names = VALUES.map(|(name, _)| name);
                let message = format!("{} is not a value of a refusal", quote(&format!("{{{word}}}")));
                return Err(ParseError::new(message, suggest(word, &names)));
            };
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            parts.push(Part::Value(*value));
            rest = behind;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Template(parts))
    }

    /// The text with its values.
    pub(crate) fn fill<'a>(&self, escaping: Escaping, value: impl Fn(TemplateValue) -> Option<&'a str>) -> String {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Value(wanted) => match value(*wanted) {
                    Some(value) => escaping.write(value, &mut out),
                    // The one value that is a number, and so stands outside of quotes.
                    None if escaping == Escaping::Json && *wanted == TemplateValue::RetryAfter => out.push_str("null"),
                    None => {}
                },
            }
        }
        out
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, escaping: Escaping, message: &str) -> String {
        let value = |wanted| match wanted {
            TemplateValue::Message => Some(message),
            TemplateValue::Status => Some("429"),
            _ => None,
        };
        Template::parse(text).unwrap().fill(escaping, value)
    }

    #[test]
    fn braces_of_json_and_css_are_text() {
        assert_eq!(filled(r#"{"a":{"b":{status}}}"#, Escaping::Json, ""), r#"{"a":{"b":429}}"#);
        assert_eq!(filled("p { color: red }{", Escaping::Html, ""), "p { color: red }{");
        assert_eq!(filled("{}{{status}}", Escaping::Plain, ""), "{}{429}");
        assert_eq!(filled("{retry_after}|{rule}", Escaping::Json, ""), "null|");
    }

    #[test]
    fn values_are_escaped_for_their_text() {
        let hostile = "<b a='\"'>&\\\n\u{e9}";
        assert_eq!(filled("{message}", Escaping::Json, hostile), "<b a='\\\"'>&\\\\\\u000a\u{e9}");
        assert_eq!(filled("{message}", Escaping::Html, hostile), "&lt;b a=&#39;&quot;&#39;&gt;&amp;\\ \u{e9}");
        assert_eq!(filled("{message}", Escaping::Url, hostile), "%3Cb%20a%3D%27%22%27%3E%26%5C%0A%C3%A9");
        assert_eq!(filled("{message}", Escaping::Plain, hostile), "<b a='\"'>&\\ \u{e9}");
        for (media, escaping) in [
            ("application/vnd.api+json; charset=utf-8", Escaping::Json),
            ("Text/HTML", Escaping::Html),
            ("application/soap+xml", Escaping::Html),
            ("text/plain", Escaping::Plain),
        ] {
            assert_eq!(Escaping::of(media), escaping, "{media}");
        }
    }

    #[test]
    fn a_misspelled_value_is_a_mistake() {
        let error = Template::parse("wait {retry_aftr} s").unwrap_err();
        assert!(error.message.contains("{retry_aftr}") && error.help.contains("retry_after"), "{error:?}");
    }
}
