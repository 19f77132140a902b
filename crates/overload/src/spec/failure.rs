//! `breaker`, `throttle` and `ejection`: what happens when an upstream, or one of its servers, fails.

use tollgate_rules::problem::{Problems, quote};
use tollgate_rules::read::FieldValue;

use super::{DAY, MS, SECOND, above, set_number, set_percent, set_span};
use crate::circuit_breaker::BreakerConfig;
use crate::client_throttle::ThrottleConfig;
use crate::outlier::OutlierConfig;

const BREAKER: &[&str] = &["failures", "ratio", "calls", "window", "open", "open_max", "probes"];
const THROTTLE: &[&str] = &["k", "window", "cap"];
const EJECTION: &[&str] = &["after", "for", "max", "share"];

/// Reads `{ failures: 10, ratio: 50%, calls: 20, window: 10s, open: 1s, open_max: 30s, probes: 3 }`.
pub fn read_breaker(value: FieldValue<'_>, problems: &mut Problems) -> BreakerConfig {
    let fields = value.fields(BREAKER, "{ failures: 10, ratio: 50%, open: 1s }", problems);
    let mut config = BreakerConfig::default();
    set_number(&mut config.failures, &fields, "failures", 1..=1_000_000, problems);
    set_percent(&mut config.percent, &fields, "ratio", 1..=100, problems);
    set_number(&mut config.calls_min, &fields, "calls", 1..=1_000_000, problems);
    set_span(&mut config.window, &fields, "window", 100 * MS..=3_600 * SECOND, problems);
    set_span(&mut config.open, &fields, "open", 10 * MS..=3_600 * SECOND, problems);
    config.open_max = config.open_max.max(config.open);
    set_span(&mut config.open_max, &fields, "open_max", 10 * MS..=3_600 * SECOND, problems);
    set_number(&mut config.probes, &fields, "probes", 1..=1_000, problems);
    if config.open > config.open_max {
        above(&fields, "open", "open_max", problems);
    }
    config
}

/// Reads `{ k: 2, window: 2m, cap: 95% }`.
pub fn read_throttle(value: FieldValue<'_>, problems: &mut Problems) -> ThrottleConfig {
    let fields = value.fields(THROTTLE, "{ k: 2 }", problems);
    let mut config = ThrottleConfig::default();
    if let Some(value) = fields.get("k")
        && let Some(text) = value.text(problems)
    {
        match read_k(text) {
            Some(k) => config.k = k,
            None => {
                let message = format!("{} is {}", value.path, quote(text));
                let help = "write calls per accepted call from 1.1 to 100, such as 2 or 1.5";
                problems.push(value.problem("out-of-range", message).help(help));
            }
        }
    }
    set_span(&mut config.window, &fields, "window", SECOND..=3_600 * SECOND, problems);
    let mut cap = 95;
    set_percent(&mut cap, &fields, "cap", 50..=99, problems);
    config.cap = f64::from(cap) / 100.0;
    config
}

/// Digits with at most one point: no sign, exponent or word that a parser of floats would take.
fn read_k(text: &str) -> Option<f64> {
    let is_plain = text.len() <= 6 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let k: f64 = text.parse().ok().filter(|_| is_plain)?;
    (1.1..=100.0).contains(&k).then_some(k)
}

/// Reads `{ after: 5, for: 5s, max: 5m, share: 50% }`.
pub fn read_ejection(value: FieldValue<'_>, problems: &mut Problems) -> OutlierConfig {
    let fields = value.fields(EJECTION, "{ after: 5, for: 5s }", problems);
    let mut config = OutlierConfig::default();
    set_number(&mut config.after, &fields, "after", 0..=1_000_000, problems);
    set_span(&mut config.duration, &fields, "for", MS..=DAY, problems);
    config.duration_max = config.duration_max.max(config.duration);
    set_span(&mut config.duration_max, &fields, "max", MS..=DAY, problems);
    set_percent(&mut config.share_percent, &fields, "share", 1..=100, problems);
    if config.duration > config.duration_max {
        above(&fields, "for", "max", problems);
    }
    config
}
