//! The `Date` field of responses, formatted once per second and thread.

use std::cell::Cell;

use tollgate_core::Time;

use tollgate_rules::datetime;

/// `Sun, 06 Nov 1994 08:49:37 GMT`
pub(super) type HttpDate = [u8; 29];

/// The date at `now`.
pub(super) fn at(now: Time) -> HttpDate {
    thread_local!(static LAST: Cell<(u64, HttpDate)> = const { Cell::new((u64::MAX, [b' '; 29])) });
    let second = now.nanos() / 1_000_000_000;
    LAST.with(|last| {
        let (of, text) = last.get();
        if of == second {
            return text;
        }
        let text = write(second);
        last.set((second, text));
        text
    })
}

fn write(second: u64) -> HttpDate {
    const DAYS: [&[u8]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"]; // the epoch was a Thursday
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let (days, rest) = (second / 86_400, second % 86_400);
    let (year, month, day) = datetime::date(days);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    let mut put = |at: usize, with: &[u8]| {
        if let Some(place) = text.get_mut(at..at + with.len()) {
            place.copy_from_slice(with);
        }
    };
    let two = |n: u64| [b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8];
    put(0, DAYS.get((days % 7) as usize).copied().unwrap_or_default());
    put(5, &two(day));
    put(8, MONTHS.get(month as usize - 1).copied().unwrap_or_default());
    put(12, &[two(year / 100), two(year)].concat());
    put(17, &two(rest / 3600));
    put(20, &two(rest / 60 % 60));
    put(23, &two(rest % 60));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_http_dates() {
        let cases = [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (4_102_444_800, "Fri, 01 Jan 2100 00:00:00 GMT"),
        ];
        for (second, text) in cases {
            assert_eq!(str::from_utf8(&at(Time::from_secs(second))).unwrap(), text);
        }
    }
}
