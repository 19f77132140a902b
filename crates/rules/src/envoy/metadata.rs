//! The value of `metadata`: any YAML, returned to the caller uninterpreted.

use crate::yaml::{YamlKind, YamlNode, is_blank};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Metadata {
    /// Null.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Metadata>),
    /// A map, in file order; keys are unique.
    Map(Vec<(String, Metadata)>),
}

impl Metadata {
    /// The value of a node. An unquoted scalar has the type that it looks like.
    pub(super) fn of(node: &YamlNode) -> Metadata {
        match &node.kind {
            YamlKind::Scalar { text, quoted: true } => Metadata::Text(text.clone()),
            YamlKind::Scalar { text, .. } => plain(text),
            YamlKind::List(items) => Metadata::List(items.iter().map(Metadata::of).collect()),
            YamlKind::Map(entries) => {
                Metadata::Map(entries.iter().map(|(key, value)| (key.text.clone(), Metadata::of(value))).collect())
            }
        }
    }
}

fn plain(text: &str) -> Metadata {
    match text {
        _ if is_blank(text) => Metadata::Null,
        "true" | "True" | "TRUE" => Metadata::Bool(true),
        "false" | "False" | "FALSE" => Metadata::Bool(false),
        _ => match number(text) {
            Some(number) => Metadata::Number(number),
            None => Metadata::Text(text.to_owned()),
        },
    }
}

/// Decimal numbers only: `inf`, `nan` and `0x10` stay text.
fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let decimal = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'-' | b'+'));
    text.parse().ok().filter(|number: &f64| decimal && number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_what_they_look_like() {
        let root = crate::yaml::parse("a: 1\nb: '1'\nc: true\nd: ~\ne: -2.5e3\nf: inf\ng: [x, {h: 0x10}]\n").unwrap();
        let Metadata::Map(entries) = Metadata::of(&root) else { panic!("a map") };
        let values: Vec<Metadata> = entries.into_iter().map(|(_, value)| value).collect();
        let text = |text: &str| Metadata::Text(text.to_owned());
        assert_eq!(
            values,
            [
                Metadata::Number(1.0),
                text("1"),
                Metadata::Bool(true),
                Metadata::Null,
                Metadata::Number(-2500.0),
                text("inf"),
                Metadata::List(vec![text("x"), Metadata::Map(vec![("h".to_owned(), text("0x10"))])]),
            ]
        );
    }
}
