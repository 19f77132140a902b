//! Header fields by name, for whoever looks at more than [`Head`](super::Head) names. Found when they are asked for, so
//! that calls which ask for none pay for none.

use http::{HeaderMap, HeaderValue};
use smallvec::SmallVec;

/// All fields of a head, where they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Received<'a> {
    /// None.
    #[default]
    Nothing,
    /// An HTTP/1 head that was parsed. Its first line passes for none of its fields: a space comes before any colon.
    Head(&'a [u8]),
    /// Those of an HTTP/2 request.
    Map(&'a HeaderMap),
}

/// What a field is that may stand once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// It does not stand there.
    Absent,
    /// Its value, without white space around it.
    Once(&'a [u8]),
    /// It stands there more than once: which of them would count?
    Repeated,
}

impl<'a> Received<'a> {
    /// The field of this name, in any case, where it may stand once.
    pub fn find(self, name: &str) -> Found<'a> {
        match *self.all(name) {
            [] => Found::Absent,
            [value] => Found::Once(value),
            _ => Found::Repeated,
        }
    }

    /// The values of all fields of this name, in their order: for lists, which may be cut into several fields.
    pub fn all(self, name: &str) -> SmallVec<[&'a [u8]; 2]> {
        match self {
            Received::Nothing => SmallVec::new(),
            Received::Head(head) => {
                let fields = head.split(|byte| *byte == b'\n').filter_map(|line| {
                    let (own, value) = line.split_at_checked(name.len())?;
                    let value = value.strip_prefix(b":").filter(|_| own.eq_ignore_ascii_case(name.as_bytes()))?;
                    Some(value.trim_ascii())
                });
                fields.collect()
            }
            Received::Map(map) => map.get_all(name).iter().map(HeaderValue::as_bytes).map(<[u8]>::trim_ascii).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] =
        b"GET /x?y:z HTTP/1.1\r\nHost: a\r\nX-One:\t 1 \r\nx-two: a, b\r\nX-TWO:c\r\nX-Empty:\r\n\r\nX-Late: 1\r\n\r\n";

    fn check(received: Received<'_>) {
        assert_eq!(received.find("x-one"), Found::Once(b"1"));
        assert_eq!(received.find("X-Empty"), Found::Once(b""));
        assert_eq!(received.find("x-two"), Found::Repeated);
        assert_eq!(received.all("x-two").as_slice(), [&b"a, b"[..], b"c"]);
        for name in ["x-on", "x-one:", "get", "x-late", "x-three", ""] {
            assert_eq!(received.find(name), Found::Absent, "{name}");
        }
    }

    #[test]
    fn finds_fields_of_http_1_and_of_nothing_but_the_head() {
        let end = HEAD.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        check(Received::Head(&HEAD[..end]));
        assert_eq!(Received::Nothing.find("x-one"), Found::Absent);
    }

    #[test]
    fn finds_fields_of_http_2() {
        let mut map = HeaderMap::new();
        for (name, value) in [("x-one", " 1\t"), ("x-two", "a, b"), ("x-two", "c"), ("x-empty", "")] {
            map.append(name, HeaderValue::from_static(value));
        }
        check(Received::Map(&map));
    }
}
