//! Durations as short text, rounded up.

use tollgate_core::Span;

const SECOND: u64 = Span::SECOND.nanos();
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// `250ms`, `1.5s`, `1h30m`: two units or three decimals at most, rounded up.
pub fn human_duration(span: Span) -> String {
    let nanos = span.nanos();
    match nanos {
        0 => "0s".to_owned(),
        _ if nanos < 1_000 => format!("{nanos}ns"),
        _ if nanos < 1_000_000 => decimal(nanos, 1_000, "us"),
        _ if nanos < SECOND => decimal(nanos, 1_000_000, "ms"),
        _ if nanos < MINUTE => decimal(nanos, SECOND, "s"),
        _ if nanos < HOUR => pair(nanos, (MINUTE, "m"), (SECOND, "s")),
        _ if nanos < DAY => pair(nanos, (HOUR, "h"), (MINUTE, "m")),
        _ => pair(nanos, (DAY, "d"), (HOUR, "h")),
    }
}

fn decimal(nanos: u64, unit: u64, name: &str) -> String {
    let thousandths = u128::from(nanos) * 1_000;
    let thousandths = thousandths.div_ceil(u128::from(unit));
    let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    format!("{}{name}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn pair(nanos: u64, large: (u64, &str), small: (u64, &str)) -> String {
    let smalls = nanos.div_ceil(small.0);
    let ratio = large.0 / small.0;
    match (smalls / ratio, smalls % ratio) {
        (larges, 0) => format!("{larges}{}", large.1),
        (larges, rest) => format!("{larges}{}{rest}{}", large.1, small.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_short_and_rounded_up() {
        let cases = [
            (0, "0s"),
            (1, "1ns"),
            (123_456, "123.456us"),
            (100_000_000, "100ms"),
            (1_500_000, "1.5ms"),
            (3_900_000_000, "3.9s"),
            (12_345_678_901, "12.346s"),
            (59_999_999_999, "60s"),
            (90_000_000_000, "1m30s"),
            (3_599_999_999_999, "60m"),
            (3_723_000_000_001, "1h3m"),
            (7_200_000_000_000, "2h"),
            (86_400_000_000_000, "1d"),
            (u64::MAX, "213504d"),
        ];
        for (nanos, shown) in cases {
            assert_eq!(human_duration(Span::from_nanos(nanos)), shown, "{nanos}");
        }
    }
}
