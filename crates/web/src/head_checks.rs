//! Checks of a head that all APIs share: `Content-Encoding` and `Request-Timeout`.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_rules::duration;
use tollgate_service::ApiError;

use crate::head::Head;

const ENCODED: ApiError =
    ApiError::new(415, "encoded_body", "Unsupported media type", "Send the body as it is, without Content-Encoding.");
const BAD_TIMEOUT: ApiError = ApiError::new(
    400,
    "bad_timeout",
    "Bad request",
    "Request-Timeout is a whole number with a unit, such as 50ms or 2s: how long you wait for the answer.",
);

/// Refuses encoded bodies.
pub fn check_encoding(head: &Head<'_>) -> Result<(), ApiError> {
    match head.content_encoding.is_none_or(|encoding| encoding.eq_ignore_ascii_case(b"identity")) {
        true => Ok(()),
        false => Err(ENCODED),
    }
}

/// The deadline of `Request-Timeout`: how long the caller waits, and therefore how long the store may take.
///
/// Forward-auth ignores it: there the client controls the header fields, and a short timeout would make the engine
/// decide without the store.
pub fn request_timeout(head: &Head<'_>) -> Result<Option<Instant>, ApiError> {
    let Some(value) = head.request_timeout else { return Ok(None) };
    let text = str::from_utf8(value.trim_ascii()).ok();
    let nanos = text.and_then(|text| duration::parse(text).ok()).ok_or(BAD_TIMEOUT)?;
    Ok(Instant::now().checked_add(Duration::from_nanos(nanos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn timeouts_are_durations_with_a_unit() {
        let left = |value: &str| {
            let head = Head { request_timeout: Some(value.as_bytes()), ..Head::default() };
            request_timeout(&head).map(|at| at.unwrap().duration_since(Instant::now()))
        };
        assert_eq!(request_timeout(&Head::default()), Ok(None));
        assert_eq!(left("50ms"), Ok(Duration::from_millis(50)));
        assert_eq!(left(" 1s500ms "), Ok(Duration::from_millis(1500)));
        for wrong in ["50", "-1s", "", "soon"] {
            assert_eq!(left(wrong), Err(BAD_TIMEOUT), "{wrong}");
        }
    }

    #[test]
    fn encoded_bodies_are_refused() {
        let check = |value| check_encoding(&Head { content_encoding: value, ..Head::default() });
        assert_eq!((check(None), check(Some(b"Identity")), check(Some(b"gzip"))), (Ok(()), Ok(()), Err(ENCODED)));
    }
}
