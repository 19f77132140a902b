//! How long a caller over HTTP waits for its answer, as far as it says so: the store then has no longer.
//!
//! Forward-auth does not look at it: there the fields are the client's, and a client without patience would be decided
//! without the store.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_rules::duration;

use super::refuse::{BAD_TIMEOUT, Refused};

/// When a caller stops waiting that sent this `Request-Timeout`.
pub(super) fn deadline(request_timeout: Option<&[u8]>) -> Result<Option<Instant>, Refused> {
    let Some(value) = request_timeout else { return Ok(None) };
    let text = str::from_utf8(value.trim_ascii()).ok();
    let nanos = text.and_then(|text| duration::parse(text).ok()).ok_or(BAD_TIMEOUT)?;
    Ok(Instant::now().checked_add(Duration::from_nanos(nanos)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_callers_say_of_their_patience() {
        let left = |value: &str| deadline(Some(value.as_bytes())).map(|at| at.unwrap().duration_since(Instant::now()));
        assert_eq!(deadline(None), Ok(None));
        assert_eq!(left("50ms"), Ok(Duration::from_millis(50)));
        assert_eq!(left(" 1s500ms "), Ok(Duration::from_millis(1500)));
        for wrong in ["50", "-1s", "", "soon"] {
            assert_eq!(left(wrong), Err(BAD_TIMEOUT), "{wrong}");
        }
    }
}
