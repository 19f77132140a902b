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

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Appends the time as access logs of web servers have it: `19/Nov/2026:06:00:00 +0000`.
pub fn common_log_time(line: &mut String, time: Time) {
    let seconds = time.nanos() / 1_000_000_000;
    let (year, month, day) = datetime::date(seconds / 86_400);
    let name = usize::try_from(month).ok().and_then(|month| MONTHS.get(month.checked_sub(1)?));
    digits(line, day, 10);
    line.push('/');
    line.push_str(name.unwrap_or(&"Jan"));
    line.push('/');
    digits(line, year, 1000);
    for number in [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60] {
        line.push(':');
        digits(line, number, 10);
    }
    line.push_str(" +0000");
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
    fn months_have_names_in_logs_of_web_servers() {
        let common = |seconds| {
            let mut line = String::new();
            common_log_time(&mut line, Time::from_secs(seconds));
            line
        };
        assert_eq!(common(1_795_068_000), "19/Nov/2026:06:00:00 +0000");
        assert_eq!(common(0), "01/Jan/1970:00:00:00 +0000");
        assert_eq!(common(951_827_696), "29/Feb/2000:12:34:56 +0000");
        assert_eq!(common(4_102_444_799), "31/Dec/2099:23:59:59 +0000");
    }

    #[test]
    fn the_reader_of_rules_agrees_on_every_day() {
        for day in 0..213_000 {
            let time = Time::from_secs(day * 86_400 + 86_399);
            assert_eq!(tollgate_rules::datetime::parse(&text(time)).ok(), Some(time.nanos()), "{}", text(time));
        }
    }
}
