//! Durations in Go's syntax.

/// Converts `1.5h`, `2h45m` or `300ms` to Tollgate's syntax; `None` if it is invalid.
pub(super) fn from_go(text: &str) -> Option<String> {
    let (mut rest, mut nanos) = (text, 0.0);
    while !rest.is_empty() {
        let unit = rest.find(|letter: char| letter != '.' && !letter.is_ascii_digit())?;
        let (number, after) = rest.split_at_checked(unit)?;
        let next = after.find(|letter: char| letter == '.' || letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(next)?;
        nanos += number.parse::<f64>().ok()? * nanos_of(unit)?;
        rest = after;
    }
    let millis = (nanos / 1e6).round();
    let is_one = !text.is_empty() && millis.is_finite() && millis < 1e15;
    is_one.then(|| if millis % 1000.0 == 0.0 { format!("{:.0}s", millis / 1000.0) } else { format!("{millis:.0}ms") })
}

fn nanos_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::from_go;

    #[test]
    fn converts_durations() {
        let cases =
            [("1.5h", "5400s"), ("2h45m", "9900s"), ("300ms", "300ms"), ("1m0.5s", "60500ms"), (".5s", "500ms")];
        for (theirs, expected) in cases {
            assert_eq!(from_go(theirs).as_deref(), Some(expected), "{theirs}");
        }
        for wrong in ["", "5", "1.2.3s", "h", "1d", "-1s", "1 s", "9e99s", "1h,"] {
            assert_eq!(from_go(wrong), None, "{wrong}");
        }
    }
}
