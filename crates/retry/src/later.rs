//! What a response says about coming later: its status, and the wait that its fields name.
//!
//! Fields are read in the order of their precision: `Retry-After` (seconds or a date), `RateLimit` (drafts 7 to 11),
//! `RateLimit-Reset`, `X-RateLimit-Reset`. A value that is no time counts as absent, and a time that has passed names no
//! wait: the caller then backs off by itself.

use http::header::{HeaderMap, RETRY_AFTER};
use http::{Method, Response, StatusCode};
use tollgate_core::{Span, Time};

/// A response that says "later".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Later {
    /// How long to wait, if the response names it.
    pub wait: Option<Span>,
    /// The call was refused before it was processed (429): any method may be repeated.
    pub unprocessed: bool,
}

/// A name in bodies of services that refuse with 400.
const THROTTLING: &[u8] = b"ThrottlingException";

impl Later {
    /// What the head of a response says; `None` if it does not say "later". `wall` is the time of the calendar.
    pub fn read<B>(response: &Response<B>, wall: Time) -> Option<Later> {
        let (status, fields) = (response.status(), response.headers());
        let says_later = match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => true,
            StatusCode::FORBIDDEN => text(fields, "x-ratelimit-remaining") == Some("0"),
            _ => false,
        };
        says_later.then(|| Later::of(status, fields, wall))
    }

    /// The same for a status 400, whose body decides.
    pub fn read_body(status: StatusCode, fields: &HeaderMap, body: &[u8], wall: Time) -> Option<Later> {
        let throttled = body.windows(THROTTLING.len()).any(|part| part == THROTTLING);
        (status == StatusCode::BAD_REQUEST && throttled).then(|| Later::of(status, fields, wall))
    }

    fn of(status: StatusCode, fields: &HeaderMap, wall: Time) -> Later {
        let wait = named_wait(fields, wall).filter(|wait| !wait.is_zero());
        Later { wait, unprocessed: status == StatusCode::TOO_MANY_REQUESTS }
    }

    /// Whether a call of this method may be repeated after it: methods that are not idempotent only if nothing was
    /// processed, or if the server recognises the repetition by a key.
    pub fn may_repeat(&self, method: &Method, has_key: bool) -> bool {
        let repeatable = [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::PUT, Method::DELETE];
        self.unprocessed || has_key || repeatable.contains(method)
    }
}

fn text<'a>(fields: &'a HeaderMap, name: &str) -> Option<&'a str> {
    fields.get(name)?.to_str().ok().map(str::trim)
}

/// The wait that the fields name; zero for a time that has passed.
fn named_wait(fields: &HeaderMap, wall: Time) -> Option<Span> {
    let retry_after =
        || text(fields, RETRY_AFTER.as_str()).and_then(|value| seconds(value).or_else(|| date(value, wall)));
    let reset = || text(fields, "ratelimit-reset").and_then(seconds);
    let x_reset = || text(fields, "x-ratelimit-reset").and_then(|value| seconds_or_epoch(value, wall));
    retry_after().or_else(|| rate_limit(fields)).or_else(reset).or_else(x_reset)
}

/// A whole number; more digits than fit count as the largest.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

fn seconds(text: &str) -> Option<Span> {
    number(text).map(Span::from_secs)
}

fn date(text: &str, wall: Time) -> Option<Span> {
    let date = httpdate::parse_http_date(text).ok()?;
    let since = date.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Some(Time::ZERO.after(Span::from(since)).since(wall))
}

/// Seconds from now below a billion (31 years), seconds since 1970 above it, milliseconds where those would be a year
/// beyond 5000.
fn seconds_or_epoch(text: &str, wall: Time) -> Option<Span> {
    const EPOCH_SECONDS_MIN: u64 = 1_000_000_000;
    const EPOCH_MILLIS_MIN: u64 = 100_000_000_000;
    Some(match number(text)? {
        seconds @ ..EPOCH_SECONDS_MIN => Span::from_secs(seconds),
        seconds @ ..EPOCH_MILLIS_MIN => Time::from_secs(seconds).since(wall),
        millis => Time::ZERO.after(Span::from_millis(millis)).since(wall),
    })
}

/// `RateLimit`: the longest wait of the policies that have nothing left; of all, if each has something.
fn rate_limit(fields: &HeaderMap) -> Option<Span> {
    let values = fields.get_all("ratelimit").iter().filter_map(|value| value.to_str().ok());
    values.filter_map(rate_limit_value).max().map(|(_, wait)| wait)
}

/// Whether the policy with the longest wait has nothing left, and that wait.
fn rate_limit_value(value: &str) -> Option<(bool, Span)> {
    let parameter = |item: &str, name: &str| {
        let mut parts = split(item, ';');
        parts.find_map(|part| number(part.trim().strip_prefix(name)?.strip_prefix('=')?.trim()))
    };
    // Draft 7 is a dictionary of one policy, later ones are a list of items with parameters.
    let dictionary = |name: &str| split(value, ',').find_map(|item| parameter(item, name));
    if let Some(reset) = dictionary("reset") {
        return Some((true, Span::from_secs(reset)));
    }
    let policies = split(value, ',').filter_map(|item| {
        let wait = Span::from_secs(parameter(item, "t")?);
        Some((parameter(item, "r") == Some(0), wait))
    });
    policies.max()
}

/// The parts between separators that are not in quotes.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let (mut quoted, mut escaped) = (false, false);
        for (index, letter) in text.char_indices() {
            match letter {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                _ if letter == separator && !quoted => {
                    rest = text.get(index + letter.len_utf8()..);
                    return text.get(..index);
                }
                _ => {}
            }
        }
        Some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1_800_000_000);

    fn wait(fields: &[(&str, &str)]) -> Option<u64> {
        let mut response = Response::builder().status(429);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        Later::read(&response.body(()).unwrap(), NOW).unwrap().wait.map(Span::millis_ceil)
    }

    #[test]
    fn policies_in_several_fields_are_one_list() {
        let fields = [("RateLimit", "\"a\";r=0;t=3, \"b\";r=1;t=90"), ("RateLimit", "\"c\"; r=0 ; t=7;pk=:eA==:")];
        assert_eq!(wait(&fields), Some(7_000));
        assert_eq!(wait(&[("RateLimit", "\"a\\\",;r=0;t=1\";r=0;t=4")]), Some(4_000), "quotes inside of a name");
        assert_eq!(wait(&[("RateLimit", "\"a\";r=5;t=6, \"b\";r=1;t=2")]), Some(6_000), "something is left of all");
        for broken in ["", ",", ";", "\"", "\"a", "r=", "\"a\";r=0;t=", "\"a\";r=0;t=-1", "a=b"] {
            assert_eq!(wait(&[("RateLimit", broken)]), None, "{broken}");
        }
    }

    #[test]
    fn other_statuses_do_not_say_later() {
        for status in [200, 301, 400, 401, 403, 404, 500, 502, 504] {
            let response = Response::builder().status(status).header("Retry-After", "5").body(()).unwrap();
            assert_eq!(Later::read(&response, NOW), None, "{status}");
        }
    }

    #[test]
    fn only_what_was_not_processed_or_is_idempotent_is_repeated() {
        let later = |unprocessed| Later { wait: None, unprocessed };
        assert!(later(true).may_repeat(&Method::POST, false));
        assert!(!later(false).may_repeat(&Method::POST, false));
        assert!(!later(false).may_repeat(&Method::PATCH, false));
        assert!(later(false).may_repeat(&Method::POST, true));
        assert!(later(false).may_repeat(&Method::DELETE, false));
    }
}
