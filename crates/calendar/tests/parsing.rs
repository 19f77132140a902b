//! Texts become calendars, or errors that say what would do.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

use tollgate_calendar::{Anchor, Calendar, CalendarError, Every, TimeZone, Weekday};

fn shown(error: CalendarError) -> String {
    format!("{}: {error}", error.code())
}

fn anchor_error(every: Every, text: &str) -> String {
    shown(Anchor::parse(every, text).unwrap_err())
}

#[test]
fn periods_are_five_words() {
    for every in Every::ALL {
        assert_eq!(Every::parse(every.name()), Ok(every));
    }
    let error = |text| shown(Every::parse(text).unwrap_err());
    assert_eq!(
        error("monthly"),
        "unknown-period: `monthly` is not a period of a quota: did you mean `month`? allowed: day, week, month, year, never"
    );
    assert_eq!(
        error("1mo"),
        "unknown-period: `1mo` is not a period of a quota: allowed: day, week, month, year, never"
    );
    assert!(error("").starts_with("unknown-period: `` is not"));
    assert!(error("Month").contains("did you mean `month`?"));
}

#[test]
fn anchors_are_read_by_their_period() {
    let read = |every, text| Anchor::parse(every, text).map(|anchor| anchor.to_string());
    assert_eq!(read(Every::Day, "6"), Ok("06:00".to_owned()));
    assert_eq!(read(Every::Day, "23:59"), Ok("23:59".to_owned()));
    assert_eq!(read(Every::Week, "Wed"), Ok("wednesday".to_owned()));
    assert_eq!(read(Every::Week, "SUNDAY"), Ok("sunday".to_owned()));
    assert_eq!(read(Every::Month, "31"), Ok("31".to_owned()));
    assert_eq!(read(Every::Month, "07"), Ok("7".to_owned()));
    assert_eq!(read(Every::Year, "03-17"), Ok("03-17".to_owned()));
    assert_eq!(read(Every::Year, "2-29"), Ok("02-29".to_owned()));
}

#[test]
fn what_an_anchor_shows_is_read_as_the_same_anchor() {
    for every in Every::ALL.into_iter().filter(|every| *every != Every::Never) {
        let anchor = Anchor::default_of(every);
        assert_eq!((anchor.every(), Anchor::parse(every, &anchor.to_string())), (every, Ok(anchor)));
    }
    assert_eq!(Anchor::default_of(Every::Week), Anchor::weekday(Weekday::Monday));
}

#[test]
fn anchors_outside_of_their_period_are_errors() {
    let month = "is not a day of the month: 1 to 31; a shorter month starts on its last day";
    for text in ["0", "32", "-1", "+7", "1.5", " 1", "", "117", "17th", "٣", "03-17", "monday"] {
        assert_eq!(anchor_error(Every::Month, text), format!("bad-anchor: `{text}` {month}"));
    }
    for text in ["24", "-1", "06:60", "6:5", "06:30:00", "noon", ""] {
        let expected = format!("bad-anchor: `{text}` is not a time of the day: an hour from 0 to 23, or `HH:MM`");
        assert_eq!(anchor_error(Every::Day, text), expected);
    }
    for text in ["02-30", "04-31", "13-01", "00-10", "01-00", "0317", "17", "2026-03-17", "03/17"] {
        let expected =
            format!("bad-anchor: `{text}` is not a date of the year: month and day as `MM-DD`, such as `03-17`");
        assert_eq!(anchor_error(Every::Year, text), expected);
    }
    assert_eq!(
        anchor_error(Every::Week, "wensday"),
        "bad-anchor: `wensday` is not a day of the week: did you mean `wednesday`?"
    );
    assert_eq!(anchor_error(Every::Week, "1"), "bad-anchor: `1` is not a day of the week: monday to sunday");
    assert_eq!(
        anchor_error(Every::Never, "1"),
        "bad-anchor: `1` anchors a quota that never starts anew: leave the anchor out"
    );
}

#[test]
fn zones_are_found_in_any_case_and_shown_as_the_database_spells_them() {
    for (text, name) in [
        ("Europe/Berlin", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("AMERICA/ARGENTINA/BUENOS_AIRES", "America/Argentina/Buenos_Aires"),
        ("utc", "UTC"),
        ("Asia/Calcutta", "Asia/Calcutta"),
        ("etc/gmt+5", "Etc/GMT+5"),
    ] {
        assert_eq!(TimeZone::parse(text).map(TimeZone::name), Ok(name));
    }
    for zone in TimeZone::all() {
        assert_eq!(TimeZone::parse(zone.name()), Ok(zone));
    }
    assert_eq!((TimeZone::default(), TimeZone::parse("UTC")), (TimeZone::UTC, Ok(TimeZone::UTC)));
}

#[test]
fn unknown_zones_are_errors_that_name_the_nearest() {
    let error = |text: &str| shown(TimeZone::parse(text).unwrap_err());
    let meant =
        |text: &str, name: &str| format!("unknown-time-zone: `{text}` is not a time zone: did you mean `{name}`?");
    for (text, name) in [
        ("Europe/Belrin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("Europe/Kyyiv", "Europe/Kyiv"),
        ("Kathmandoo", "Asia/Kathmandu"),
        (" UTC", "UTC"),
    ] {
        assert_eq!(error(text), meant(text, name));
    }
    for text in ["PST", "+02:00", "", "Mars/Olympus_Mons", "Factory", "../../etc/passwd"] {
        let help = "use a name of the IANA database, such as `Europe/Berlin` or `UTC`";
        assert_eq!(error(text), format!("unknown-time-zone: `{text}` is not a time zone: {help}"));
    }
    assert!(error(&"x".repeat(100_000)).len() < 300);
    assert!(error("a\nb").contains(r"`a\nb`"));
}

#[test]
fn an_anchor_of_no_period_is_an_error() {
    for text in ["0", "17", "31", "23:59", "sunday", "mon", "02-29"] {
        assert_eq!(Anchor::check(text), Ok(()), "{text}");
    }
    let error = |text: &str| shown(Anchor::check(text).unwrap_err());
    for text in ["32", "-1", "1.5", "13-01", "02-30", "24:00", "", "first"] {
        let periods = "a day of the month (1 to 31), a day of the week, a date (`MM-DD`) or a time of the day (0 to 23, or `HH:MM`)";
        assert_eq!(error(text), format!("bad-anchor: `{text}` is where no period starts: {periods}"));
    }
    assert_eq!(error("wensday"), "bad-anchor: `wensday` is where no period starts: did you mean `wednesday`?");
}

#[test]
fn a_calendar_is_small() {
    assert!(size_of::<Anchor>() <= 3);
    assert!(size_of::<Calendar>() <= 6);
}
