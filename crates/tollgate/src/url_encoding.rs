//! Percent-encoding of text that becomes a part of a URL.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The text, with every character encoded that could be read as a part of the URL's syntax.
pub fn url_component(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}
