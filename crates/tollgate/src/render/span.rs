//! Lengths of time for people: short, and never shorter than the truth.

use tollgate_core::Span;
use tollgate_rules::duration;

/// As a rules file would say it where that is short (`250ms`, `90m`); otherwise rounded up to what matters.
pub fn for_people(span: Span) -> String {
    const SHORT: usize = 6;
    let exact = duration::display(span.nanos());
    if exact.len() <= SHORT {
        return exact;
    }
    let rounded = |unit: u64| duration::display(span.nanos().div_ceil(unit) * unit);
    match span.nanos() {
        ..1_000_000 => rounded(1_000),
        ..60_000_000_000 => seconds(span.millis_ceil()),
        ..3_600_000_000_000 => rounded(Span::SECOND.nanos()),
        _ => rounded(60 * Span::SECOND.nanos()),
    }
}

fn seconds(millis: u64) -> String {
    match millis {
        ..1_000 => format!("{millis}ms"),
        _ => {
            let text = format!("{}.{:03}", millis / 1_000, millis % 1_000);
            format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_short_and_never_too_short() {
        let cases = [
            (0, "0s"),
            (100_000_000, "100ms"),
            (3_900_000_000, "3900ms"),
            (59_999_999_999, "60s"),
            (12_345_678_901, "12.346s"),
            (123_456, "124us"),
            (3_599_999_999_999, "1h"),
            (3_723_000_000_001, "63m"),
            (86_400_000_000_000, "1d"),
        ];
        for (nanos, shown) in cases {
            assert_eq!(for_people(Span::from_nanos(nanos)), shown, "{nanos}");
        }
    }
}
