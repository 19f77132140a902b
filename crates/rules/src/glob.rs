//! Text with `*`, matched without backtracking.
//!
//! A glob consists of its literal pieces. The first is a prefix, the last a suffix, and those between are searched in
//! order, each at its first occurrence: a later occurrence never helps.

/// A pattern with at least one `*`, which matches any text, including `/` and the empty text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glob {
    /// Start of the text.
    pub prefix: String,
    /// Pieces between, in this order; never empty.
    pub middle: Vec<String>,
    /// End of the text.
    pub suffix: String,
}

impl Glob {
    /// The glob of a text, or `None` if it has no `*`.
    pub fn parse(text: &str) -> Option<Self> {
        let (prefix, rest) = text.split_once('*')?;
        let (middle, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
        Some(Self {
            prefix: prefix.to_owned(),
            middle: middle.split('*').filter(|piece| !piece.is_empty()).map(str::to_owned).collect(),
            suffix: suffix.to_owned(),
        })
    }

    /// Whether the whole of `value` matches.
    pub fn matches(&self, value: &str) -> bool {
        let Some(rest) = value.strip_prefix(self.prefix.as_str()) else { return false };
        let Some(rest) = rest.strip_suffix(self.suffix.as_str()) else { return false };
        let after = |rest: &str, piece: &String| Some(rest.len() - rest.split_once(piece.as_str())?.1.len());
        let found = self.middle.iter().try_fold(rest, |rest, piece| rest.get(after(rest, piece)?..));
        found.is_some()
    }
}

impl std::fmt::Display for Glob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}*", self.prefix)?;
        for piece in &self.middle {
            write!(f, "{piece}*")?;
        }
        f.write_str(&self.suffix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_is_any_text() {
        let cases = [
            ("a*", "a", true),
            ("a*", "abc", true),
            ("a*", "ba", false),
            ("*a", "ba", true),
            ("*a", "ab", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "acb", false),
            ("*ab*ab*", "abab", true),
            ("*ab*ab*", "aba", false),
            ("**", "", true),
            ("*é*", "caf\u{e9}s", true),
            ("*aab", "aaab", true),
        ];
        for (pattern, value, expected) in cases {
            assert_eq!(Glob::parse(pattern).unwrap().matches(value), expected, "{pattern} {value}");
        }
        assert_eq!(Glob::parse("plain"), None);
    }

    #[test]
    fn agrees_with_the_obvious_definition() {
        fn naive(pattern: &[u8], value: &[u8]) -> bool {
            match pattern.split_first() {
                None => value.is_empty(),
                Some((b'*', rest)) => (0..=value.len()).any(|skip| naive(rest, &value[skip..])),
                Some((byte, rest)) => value.first() == Some(byte) && naive(rest, &value[1..]),
            }
        }
        let words = |alphabet: &[u8], length: u32| -> Vec<String> {
            let base = alphabet.len();
            (0..=length)
                .flat_map(|size| {
                    (0..base.pow(size)).map(move |number| (0..size).map(move |at| number / base.pow(at) % base))
                })
                .map(|digits| digits.map(|digit| char::from(alphabet[digit])).collect())
                .collect()
        };
        for pattern in words(b"ab*", 5).iter().filter(|pattern| pattern.contains('*')) {
            let glob = Glob::parse(pattern).unwrap();
            for value in words(b"ab", 5) {
                let expected = naive(pattern.as_bytes(), value.as_bytes());
                assert_eq!(glob.matches(&value), expected, "{pattern} {value}");
            }
        }
    }

    /// J17 as a glob: exponential backtracking would never finish.
    #[test]
    fn many_stars_are_linear() {
        let glob = Glob::parse(&"*a".repeat(200)).unwrap();
        let value = "a".repeat(1_000_000) + "b";
        assert!(!glob.matches(&value));
        assert!(!Glob::parse(&("*a".repeat(200) + "*c*")).unwrap().matches(&value));
    }
}
