//! The parameters of a page: those of its URL, or of a form.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters to encode in a path segment or a parameter.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':').remove(b',');

/// Names and values, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageParameters(Vec<(String, String)>);

impl PageParameters {
    /// Reads an encoded form or query. A browser writes what it is given; what is not UTF-8 becomes replacement characters.
    pub fn read(text: &[u8]) -> PageParameters {
        let pairs = form_urlencoded::parse(text);
        let pairs = pairs.map(|(name, value)| (name.into_owned(), value.replace("\r\n", "\n").replace('\0', "")));
        PageParameters(pairs.collect())
    }

    /// A value without surrounding white space; empty if it is absent.
    pub fn get(&self, name: &str) -> &str {
        self.raw(name).trim()
    }

    /// A value as it was sent; empty if it is absent.
    pub fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str())
    }

    /// A value that is not blank.
    pub fn given(&self, name: &str) -> Option<&str> {
        Some(self.get(name)).filter(|value| !value.is_empty())
    }

    /// A value that is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name).parse().ok()
    }
}

/// A URL with its query: parameters without a value are left out.
pub fn url(path: &str, parameters: &[(&str, &str)]) -> String {
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    let query: Vec<String> = given.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}

/// A text as a path segment or the value of a parameter.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_as_browsers_write_them() {
        let form = PageParameters::read(b"a=1&b=x+y%26&c=%0D%0Al2&d&e=%ff&f=a%00b");
        assert_eq!((form.get("a"), form.number("a"), form.raw("b")), ("1", Some(1), "x y&"));
        assert_eq!((form.raw("c"), form.get("c")), ("\nl2", "l2"));
        assert_eq!((form.given("d"), form.get("e"), form.get("f"), form.get("none")), (None, "\u{fffd}", "ab", ""));
    }

    #[test]
    fn a_url_keeps_its_values() {
        let written = url("/console/rule", &[("id", "a b&c=d/\"<é>"), ("namespace", ""), ("x", "1")]);
        assert_eq!(written, "/console/rule?id=a%20b%26c%3Dd%2F%22%3C%C3%A9%3E&x=1");
        let (_, query) = written.split_once('?').unwrap();
        assert_eq!(PageParameters::read(query.as_bytes()).get("id"), "a b&c=d/\"<é>");
        assert_eq!(url("/", &[("a", "")]), "/");
    }
}
