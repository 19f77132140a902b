//! `Request-Timeout`: how long the caller waits, and therefore how long the store may take.
//!
//! Forward-auth ignores it: there the client controls the header fields, and a short timeout would make the engine
//! decide without the store.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_rules::duration;

use tollgate_service::ApiError;

use super::errors::BAD_TIMEOUT;

/// The deadline of a `Request-Timeout` value.
pub(super) fn of(request_timeout: Option<&[u8]>) -> Result<Option<Instant>, ApiError> {
    let Some(value) = request_timeout else { return Ok(None) };
    let text = str::from_utf8(value.trim_ascii()).ok();
    let nanos = text.and_then(|text| duration::parse(text).ok()).ok_or(BAD_TIMEOUT)?;
    Ok(Instant::now().checked_add(Duration::from_nanos(nanos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reads_durations_with_a_unit() {
        let left = |value: &str| of(Some(value.as_bytes())).map(|at| at.unwrap().duration_since(Instant::now()));
        assert_eq!(of(None), Ok(None));
        assert_eq!(left("50ms"), Ok(Duration::from_millis(50)));
        assert_eq!(left(" 1s500ms "), Ok(Duration::from_millis(1500)));
        for wrong in ["50", "-1s", "", "soon"] {
            assert_eq!(left(wrong), Err(BAD_TIMEOUT), "{wrong}");
        }
    }
}
