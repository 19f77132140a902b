//! The caller's deadline (`grpc-timeout`), and futures that end with it or when the caller resets the call.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use http::HeaderMap;
use tokio::time::Instant;
use tonic::Status;

use tollgate_net::Deadline;

/// Header name.
const NAME: &str = "grpc-timeout";
/// Maximum number of digits.
const DIGITS_MAX: usize = 8;

/// The caller's timeout; `None` without the header. A malformed value is an error: to ignore it would silently drop a
/// deadline that the caller relies on.
pub(super) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, InvalidTimeout> {
    let Some(value) = headers.get(NAME) else { return Ok(None) };
    parse(value.as_bytes()).map(Some).ok_or(InvalidTimeout)
}

/// Malformed `grpc-timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidTimeout;

fn parse(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if digits.is_empty() || digits.len() > DIGITS_MAX || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

/// Status of a call whose deadline has passed.
pub(super) fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("the time that grpc-timeout gave is over")
}

/// Output of `future`; `None` once the deadline has passed, and `future` is then not polled again.
pub(super) async fn before_deadline<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let Some(at) = deadline else { return Some(future.await) };
    let mut deadline = Deadline::new(at);
    poll_fn(|cx| {
        // The timer has millisecond resolution and never fires early, so the clock is checked too.
        if Instant::now() >= at || deadline.poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        future.as_mut().poll(cx).map(Some)
    })
    .await
}

/// Output of `future`; `None` if the client resets the stream.
pub(super) async fn until_reset<F: Future>(respond: &mut SendResponse<Bytes>, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match respond.poll_reset(cx) {
        Poll::Ready(_) => Poll::Ready(None),
        Poll::Pending => future.as_mut().poll(cx).map(Some),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn parses_every_unit_and_rejects_malformed_values() {
        let hours = Duration::from_secs(99_999_999 * 3600);
        let read = [
            ("20m", Duration::from_millis(20)),
            ("99999999H", hours),
            ("2M", Duration::from_secs(120)),
            ("007S", Duration::from_secs(7)),
            ("5u", Duration::from_micros(5)),
            ("0n", Duration::ZERO),
        ];
        for (text, expected) in read {
            assert_eq!(parse(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["", "m", "20", "-1m", "+1m", "1.5S", "123456789m", "20 m", "20ms", "\u{661}m", "20x"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
    #[tokio::test(start_paused = true)]
    async fn an_expired_deadline_prevents_the_first_poll() {
        let begun = Cell::new(false);
        let work = || async { begun.set(true) };
        assert_eq!(before_deadline(Some(Instant::now()), work()).await, None);
        assert!(!begun.get());
        assert_eq!(before_deadline(Some(Instant::now() + Duration::from_millis(1)), work()).await, Some(()));
        assert_eq!(before_deadline(None, work()).await, Some(()));
        let store = tokio::time::sleep(Duration::from_millis(50));
        assert_eq!(
            before_deadline(Some(Instant::now() + Duration::from_millis(20)), store).await,
            None,
            "nor waited for longer"
        );
    }
}
