//! Header fields by name, for handlers that read more fields than [`Head`](super::Head) has. The lookup happens on
//! demand: requests that need no other field cost nothing.

use http::{HeaderMap, HeaderValue};
use smallvec::SmallVec;

/// All header fields of a request, as they were received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceivedHeaders<'a> {
    /// No fields.
    #[default]
    Empty,
    /// The bytes of a valid HTTP/1 head. The request line cannot match a field name: a space precedes its first colon.
    Http1(&'a [u8]),
    /// The fields of a request that hyper has read.
    Map(&'a HeaderMap),
}

/// Result of looking up a field that may be sent once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderLookup<'a> {
    /// The field is missing.
    Absent,
    /// Its value, without surrounding white space.
    Once(&'a [u8]),
    /// The field is repeated: readers disagree about which one counts.
    Repeated,
}

impl<'a> ReceivedHeaders<'a> {
    /// Looks up a field that may be sent once. Names are compared without case.
    pub fn find(self, name: &str) -> HeaderLookup<'a> {
        match *self.all(name) {
            [] => HeaderLookup::Absent,
            [value] => HeaderLookup::Once(value),
            _ => HeaderLookup::Repeated,
        }
    }

    /// The values of all fields of this name, in order: a list may be split over several fields.
    pub fn all(self, name: &str) -> SmallVec<[&'a [u8]; 2]> {
        match self {
            ReceivedHeaders::Empty => SmallVec::new(),
            ReceivedHeaders::Http1(head) => {
                let fields = head.split(|byte| *byte == b'\n').filter_map(|line| {
                    let (own, value) = line.split_at_checked(name.len())?;
                    let value = value.strip_prefix(b":").filter(|_| own.eq_ignore_ascii_case(name.as_bytes()))?;
                    Some(value.trim_ascii())
                });
                fields.collect()
            }
            ReceivedHeaders::Map(map) => {
                map.get_all(name).iter().map(HeaderValue::as_bytes).map(<[u8]>::trim_ascii).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] =
        b"GET /x?y:z HTTP/1.1\r\nHost: a\r\nX-One:\t 1 \r\nx-two: a, b\r\nX-TWO:c\r\nX-Empty:\r\n\r\nX-Late: 1\r\n\r\n";

    fn check(headers: ReceivedHeaders<'_>) {
        assert_eq!(headers.find("x-one"), HeaderLookup::Once(b"1"));
        assert_eq!(headers.find("X-Empty"), HeaderLookup::Once(b""));
        assert_eq!(headers.find("x-two"), HeaderLookup::Repeated);
        assert_eq!(headers.all("x-two").as_slice(), [&b"a, b"[..], b"c"]);
        for name in ["x-on", "x-one:", "get", "x-late", "x-three", ""] {
            assert_eq!(headers.find(name), HeaderLookup::Absent, "{name}");
        }
    }

    #[test]
    fn finds_fields_of_an_http_1_head_and_none_after_it() {
        let end = HEAD.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        check(ReceivedHeaders::Http1(&HEAD[..end]));
        assert_eq!(ReceivedHeaders::Empty.find("x-one"), HeaderLookup::Absent);
    }

    #[test]
    fn finds_fields_of_hyper() {
        let mut map = HeaderMap::new();
        for (name, value) in [("x-one", " 1\t"), ("x-two", "a, b"), ("x-two", "c"), ("x-empty", "")] {
            map.append(name, HeaderValue::from_static(value));
        }
        check(ReceivedHeaders::Map(&map));
    }
}
