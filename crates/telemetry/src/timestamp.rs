//! RFC 3339 timestamps in UTC, to the millisecond.

use tollgate_core::Time;

use tollgate_rules::datetime;

/// Appends `2026-01-31T23:59:59.999Z`.
pub fn rfc3339(line: &mut String, time: Time) {
    let millis = time.nanos() / 1_000_000;
    let seconds = millis / 1000;
    let (year, month, day) = datetime::date(seconds / 86_400);
    let (hour, minute, second, fraction) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60, millis % 1000);
    digits(line, year, 1000);
    for (before, number) in [('-', month), ('-', day), ('T', hour), (':', minute), (':', second)] {
        line.push(before);
        digits(line, number, 10);
    }
    line.push('.');
    digits(line, fraction, 100);
    line.push('Z');
}

/// Appends a number with leading zeros; `first` is the value of its first digit. By hand, because `write!` takes longer
/// than a decision.
fn digits(line: &mut String, number: u64, first: u64) {
    let mut worth = first;
    while worth > 0 {
        line.push(char::from(b'0' + (number / worth % 10) as u8));
        worth /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(time: Time) -> String {
        let mut line = String::new();
        rfc3339(&mut line, time);
        line
    }

    #[test]
    fn known_instants() {
        assert_eq!(text(Time::ZERO), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(Time::from_nanos(951_827_696_789_999_999)), "2000-02-29T12:34:56.789Z");
        assert_eq!(text(Time::from_secs(4_107_542_399)), "2100-02-28T23:59:59.000Z");
    }

    #[test]
    fn the_reader_of_rules_agrees_on_every_day() {
        for day in 0..213_000 {
            let time = Time::from_secs(day * 86_400 + 86_399);
            assert_eq!(tollgate_rules::datetime::parse(&text(time)).ok(), Some(time.nanos()), "{}", text(time));
        }
    }
}
