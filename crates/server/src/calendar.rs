//! The Gregorian calendar, for the dates of answers and of log lines.

/// Year, month and day of a day since 1970. Years are taken to begin in March, so that a leap day ends one; 400 of them
/// always have 146,097 days.
pub(crate) fn date(day: u64) -> (u64, u64, u64) {
    let since = day + 719_468; // 0000-03-01
    let (era, of_era) = (since / 146_097, since % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}
