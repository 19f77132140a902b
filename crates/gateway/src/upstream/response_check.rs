//! Which heads of responses are passed on: those about whose end every reader agrees, and that answer what was asked.

use http::{HeaderMap, Response, StatusCode, Version, header};
use hyper::body::Incoming;

use super::error::UpstreamError;

/// Checks the response to a request that asked for no other protocol.
pub(super) fn check_response(response: &Response<Incoming>) -> Result<(), UpstreamError> {
    // The caller would take what follows for a tunnel; a server that says so takes it for one already.
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(UpstreamError::UnaskedUpgrade);
    }
    check_framing(response)
}

/// Checks where a response ends.
pub(super) fn check_framing(response: &Response<Incoming>) -> Result<(), UpstreamError> {
    match has_one_framing(response.version(), response.headers()) {
        true => Ok(()),
        false => Err(UpstreamError::TwoFramings),
    }
}

/// Chunks alone, one length alone, or neither. Any other coding would be passed on without its name, and of a list of
/// lengths another reader may take another one.
fn has_one_framing(version: Version, headers: &HeaderMap) -> bool {
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (lengths.next(), codings.next()) {
        (None, None) => true,
        (Some(length), None) => {
            lengths.next().is_none() && !length.is_empty() && length.as_bytes().iter().all(u8::is_ascii_digit)
        }
        (None, Some(coding)) => {
            let is_chunked = coding.as_bytes().eq_ignore_ascii_case(b"chunked");
            is_chunked && codings.next().is_none() && version == Version::HTTP_11
        }
        (Some(_), Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn a_response_has_one_end_for_all_readers() {
        let one = |version, fields: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            has_one_framing(version, &headers)
        };
        let (length, coding) = ("content-length", "transfer-encoding");
        for fields in [&[][..], &[(length, "3")], &[(coding, "chunked")], &[(coding, "Chunked")]] {
            assert!(one(Version::HTTP_11, fields), "{fields:?}");
        }
        for fields in [
            &[(length, "3"), (coding, "chunked")][..],
            &[(length, "3"), (length, "3")],
            &[(length, "3, 3")],
            &[(length, "+3")],
            &[(length, "")],
            &[(coding, "gzip, chunked")],
            &[(coding, "identity")],
            &[(coding, "chunked"), (coding, "chunked")],
        ] {
            assert!(!one(Version::HTTP_11, fields), "{fields:?}");
        }
        assert!(!one(Version::HTTP_10, &[(coding, "chunked")]), "HTTP/1.0 has no chunks");
    }
}
