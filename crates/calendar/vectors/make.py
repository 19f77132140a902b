"""Writes calendars.json: periods of quotas, computed with Python's zoneinfo and nothing of this repository.

    pip install --target DIR tzdata==2026.5        # release 2026e of the IANA database, as the crate embeds
    PYTHONPATH=DIR python3 make.py > calendars.json

The definition is taken literally and slowly: a period starts at the first instant at which local clocks show the
anchor's date and time, or later. The script looks at the clock of the zone second by second around each date and needs
no notion of gaps and folds; periods are what lies between two different starts. Rows marked "by hand" are compared with
values that were worked out from the rules of the database, and stop the script if they differ.
"""

import json
import sys
from calendar import monthrange
from datetime import date, datetime, timedelta, timezone
from importlib.metadata import version
from zoneinfo import ZoneInfo, reset_tzpath

reset_tzpath(to=[])  # the package alone, never the files of the machine

UTC = timezone.utc
COARSE = 900
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def clock(zone, instant):
    """What a local clock shows, as if it were UTC."""
    return datetime.fromtimestamp(instant, UTC).astimezone(zone).replace(tzinfo=UTC).timestamp()


def first_instant(zone, local):
    """The first instant at which the clock shows `local` or later."""
    wanted = int(local.replace(tzinfo=UTC).timestamp())
    instant = wanted - 40 * 3600
    while clock(zone, instant) < wanted:
        instant += COARSE
    instant -= COARSE
    while clock(zone, instant) < wanted:
        instant += 1
    return instant


def dates(every, anchor, around):
    """Nominal starts from well before to well after a date."""
    if every == "day":
        hour, minute = (anchor.split(":") + ["0"])[:2]
        for days in range(-3, 4):
            day = around + timedelta(days=days)
            yield datetime(day.year, day.month, day.day, int(hour), int(minute))
    elif every == "week":
        for days in range(-15, 16):
            day = around + timedelta(days=days)
            if day.weekday() == WEEKDAYS.index(anchor):
                yield datetime(day.year, day.month, day.day)
    elif every == "month":
        for months in range(-3, 4):
            index = around.year * 12 + around.month - 1 + months
            year, month = index // 12, index % 12 + 1
            yield datetime(year, month, min(int(anchor), monthrange(year, month)[1]))
    elif every == "year":
        month, day = map(int, anchor.split("-"))
        for year in range(around.year - 2, around.year + 3):
            yield datetime(year, month, min(day, monthrange(year, month)[1]))


def text(instant):
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def period(zone_name, every, anchor, at):
    if every == "never":
        return "1970-01-01T00:00:00Z", None
    zone = ZoneInfo(zone_name)
    instant = datetime.fromisoformat(at.replace("Z", "+00:00"))
    starts = sorted({first_instant(zone, local) for local in dates(every, anchor, instant.date())})
    now = int(instant.timestamp())
    return text(max(s for s in starts if s <= now)), text(min(s for s in starts if s > now))


DEFAULTS = {"day": "0", "week": "monday", "month": "1", "year": "01-01"}
CASES = []


def case(name, note, zone, every, anchor, *steps):
    """A step is an instant, or an instant with the start and the end that were worked out by hand."""
    rows = []
    for step in steps:
        at, *by_hand = step if isinstance(step, tuple) else (step,)
        start, end = period(zone, every, anchor or DEFAULTS.get(every, ""), at)
        if by_hand and [start, end] != list(by_hand):
            sys.exit(f"{name} at {at}: {start} {end}, by hand {by_hand}")
        rows.append({"at": at, "start": start, "end": end, **({"by_hand": True} if by_hand else {})})
    CASES.append({"name": name, "note": note, "zone": zone, "every": every, "anchor": anchor, "steps": rows})


# --- UTC: the calendar alone ------------------------------------------------------------------------------------------

case("utc_days", "half open: the last second belongs to the day, midnight to the next", "UTC", "day", None,
     ("2026-11-18T00:00:00Z", "2026-11-18T00:00:00Z", "2026-11-19T00:00:00Z"),
     ("2026-11-18T23:59:59Z", "2026-11-18T00:00:00Z", "2026-11-19T00:00:00Z"),
     ("2026-11-19T00:00:00Z", "2026-11-19T00:00:00Z", "2026-11-20T00:00:00Z"),
     "2026-12-31T23:59:59Z", "2024-02-29T12:00:00Z", "1999-12-31T23:59:59Z")
case("utc_day_at_six", "days from 06:30 to 06:30", "UTC", "day", "06:30",
     ("2026-11-18T06:29:59Z", "2026-11-17T06:30:00Z", "2026-11-18T06:30:00Z"),
     ("2026-11-18T06:30:00Z", "2026-11-18T06:30:00Z", "2026-11-19T06:30:00Z"), "2027-01-01T00:00:00Z")
case("utc_weeks", "2026-11-18 is a Wednesday", "UTC", "week", None,
     ("2026-11-18T12:00:00Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"),
     ("2026-11-22T23:59:59Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"),
     "2026-11-16T00:00:00Z", "2027-01-01T00:00:00Z")
case("utc_weeks_from_sunday", "as calendars in the United States are printed", "UTC", "week", "sunday",
     ("2026-11-18T12:00:00Z", "2026-11-15T00:00:00Z", "2026-11-22T00:00:00Z"), "2026-11-15T00:00:00Z",
     "2024-02-29T00:00:00Z")
case("utc_months", "the first of each month", "UTC", "month", None,
     ("2026-11-18T12:00:00Z", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
     "2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z", "2024-02-29T23:59:59Z", "2100-02-28T23:59:59Z")
case("utc_month_17", "a billing day in the middle", "UTC", "month", "17",
     ("2026-11-16T23:59:59Z", "2026-10-17T00:00:00Z", "2026-11-17T00:00:00Z"),
     ("2026-11-17T00:00:00Z", "2026-11-17T00:00:00Z", "2026-12-17T00:00:00Z"), "2027-01-01T00:00:00Z")
case("utc_month_29", "February has no 29th in common years", "UTC", "month", "29",
     ("2026-02-28T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-29T00:00:00Z"),
     ("2024-02-28T12:00:00Z", "2024-01-29T00:00:00Z", "2024-02-29T00:00:00Z"),
     ("2024-02-29T12:00:00Z", "2024-02-29T00:00:00Z", "2024-03-29T00:00:00Z"),
     "2026-02-27T23:59:59Z", "2026-03-28T23:59:59Z")
case("utc_month_30", "only February is shorter", "UTC", "month", "30",
     ("2026-02-28T12:00:00Z", "2026-02-28T00:00:00Z", "2026-03-30T00:00:00Z"),
     "2024-02-29T00:00:00Z", "2026-04-30T00:00:00Z", "2026-01-29T23:59:59Z")
case("utc_month_31", "shorter months clamp and leave no trace: Jan 31, Feb 28 or 29, Mar 31, Apr 30", "UTC", "month", "31",
     ("2026-01-31T00:00:00Z", "2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z"),
     ("2026-02-28T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"),
     ("2026-03-31T00:00:00Z", "2026-03-31T00:00:00Z", "2026-04-30T00:00:00Z"),
     ("2026-04-30T00:00:00Z", "2026-04-30T00:00:00Z", "2026-05-31T00:00:00Z"),
     ("2024-02-28T23:59:59Z", "2024-01-31T00:00:00Z", "2024-02-29T00:00:00Z"),
     ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z", "2024-03-31T00:00:00Z"),
     ("2100-02-28T00:00:00Z", "2100-02-28T00:00:00Z", "2100-03-31T00:00:00Z"),
     "2028-02-29T00:00:00Z", "2000-02-29T00:00:00Z", "2026-12-31T00:00:00Z")
case("utc_years", "January 1", "UTC", "year", None,
     ("2026-11-18T12:00:00Z", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
     "2024-12-31T23:59:59Z", "2100-06-01T00:00:00Z")
case("utc_year_march_17", "a contract's year", "UTC", "year", "03-17",
     ("2026-03-16T23:59:59Z", "2025-03-17T00:00:00Z", "2026-03-17T00:00:00Z"),
     ("2026-03-17T00:00:00Z", "2026-03-17T00:00:00Z", "2027-03-17T00:00:00Z"), "2028-02-29T12:00:00Z")
case("utc_year_leap_day", "February 29 is February 28 in common years; 2100 is one", "UTC", "year", "02-29",
     ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z", "2025-02-28T00:00:00Z"),
     ("2024-02-28T23:59:59Z", "2023-02-28T00:00:00Z", "2024-02-29T00:00:00Z"),
     ("2028-02-28T12:00:00Z", "2027-02-28T00:00:00Z", "2028-02-29T00:00:00Z"),
     ("2100-02-28T00:00:00Z", "2100-02-28T00:00:00Z", "2101-02-28T00:00:00Z"), "2025-02-28T00:00:00Z",
     "2104-02-28T12:00:00Z")
case("utc_year_last_day", "December 31", "UTC", "year", "12-31", "2026-12-30T23:59:59Z", "2026-12-31T00:00:00Z")
case("lifetime", "one period", "Europe/Berlin", "never", None, "1970-01-01T00:00:00Z", "2026-11-18T12:00:00Z",
     "2400-01-01T00:00:00Z")

# --- Europe/Berlin: days of 23 and 25 hours ---------------------------------------------------------------------------

case("berlin_days", "DST from 2026-03-29 01:00Z to 2026-10-25 01:00Z", "Europe/Berlin", "day", None,
     ("2026-03-28T23:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
     ("2026-03-29T21:59:59Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
     ("2026-10-24T22:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
     ("2026-10-25T22:59:59Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
     "2026-10-25T23:00:00Z", "2026-07-01T12:00:00Z", "1981-03-29T12:00:00Z", "1996-10-27T12:00:00Z")
case("berlin_day_in_the_gap", "02:30 is skipped on 2026-03-29: the day starts at 03:00 local, 01:00Z", "Europe/Berlin",
     "day", "02:30",
     ("2026-03-29T00:59:59Z", "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"),
     ("2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"),
     "2026-03-30T00:29:59Z")
case("berlin_day_in_the_fold", "02:30 comes twice on 2026-10-25: the earlier, at 00:30Z", "Europe/Berlin", "day", "02:30",
     ("2026-10-25T00:29:59Z", "2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z"),
     ("2026-10-25T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"),
     ("2026-10-25T01:15:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"),
     "2026-10-25T01:30:00Z", "2026-10-26T01:29:59Z")
case("berlin_weeks", "weeks of 167 and 169 hours", "Europe/Berlin", "week", None,
     ("2026-03-29T12:00:00Z", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"),
     ("2026-10-25T12:00:00Z", "2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z"), "2027-01-01T00:00:00Z")
case("berlin_month_17", "the example of the documentation", "Europe/Berlin", "month", "17",
     ("2026-11-16T22:59:59Z", "2026-10-16T22:00:00Z", "2026-11-16T23:00:00Z"),
     ("2026-11-16T23:00:00Z", "2026-11-16T23:00:00Z", "2026-12-16T23:00:00Z"),
     "2026-03-20T00:00:00Z", "2026-07-17T00:00:00Z")
case("berlin_month_31", "the anchor falls on a DST day in 2024", "Europe/Berlin", "month", "31",
     ("2024-03-31T00:30:00Z", "2024-03-30T23:00:00Z", "2024-04-29T22:00:00Z"), "2024-02-29T00:00:00Z",
     "2024-10-30T23:00:00Z")
case("berlin_years", "the year starts an hour before that of UTC", "Europe/Berlin", "year", None,
     ("2026-12-31T23:00:00Z", "2026-12-31T23:00:00Z", "2027-12-31T23:00:00Z"), "2026-12-31T22:59:59Z",
     "2100-02-28T12:00:00Z")

# --- Zones with unusual rules -----------------------------------------------------------------------------------------

case("sao_paulo_days", "until 2019 clocks went forward at midnight: the day starts at 01:00", "America/Sao_Paulo", "day",
     None,
     ("2018-11-04T02:59:59Z", "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z"),
     ("2018-11-04T03:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"),
     ("2018-02-18T02:30:00Z", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z"),
     "2018-11-05T01:59:59Z", "2017-10-15T12:00:00Z", "2019-02-17T02:59:59Z", "2026-11-18T02:59:59Z")
case("sao_paulo_month", "the month of November 2018 starts on the 4th, in the gap", "America/Sao_Paulo", "month", "4",
     ("2018-11-04T03:00:00Z", "2018-11-04T03:00:00Z", "2018-12-04T02:00:00Z"), "2018-11-04T02:59:59Z",
     "2019-02-04T02:00:00Z")
case("havana_days", "clocks go forward from 00:00 to 01:00 and back from 01:00 to 00:00", "America/Havana", "day", None,
     ("2026-03-08T05:00:00Z", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"),
     ("2026-11-01T04:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"),
     ("2026-11-01T05:30:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"),
     "2026-03-08T04:59:59Z", "2026-11-01T03:59:59Z", "2026-11-01T05:00:00Z")
case("havana_month", "November 1 2026 has two midnights: the earlier", "America/Havana", "month", None,
     ("2026-11-01T04:00:00Z", "2026-11-01T04:00:00Z", "2026-12-01T05:00:00Z"), "2026-11-01T05:00:00Z",
     "2026-10-31T23:00:00Z")
case("beirut_days", "midnight is skipped in March; in October it is the hour before that comes twice", "Asia/Beirut", "day", None,
     ("2024-03-30T22:00:00Z", "2024-03-30T22:00:00Z", "2024-03-31T21:00:00Z"),
     ("2024-10-26T20:30:00Z", "2024-10-25T21:00:00Z", "2024-10-26T22:00:00Z"),
     ("2024-10-26T21:30:00Z", "2024-10-25T21:00:00Z", "2024-10-26T22:00:00Z"),
     "2024-03-30T21:59:59Z", "2024-10-26T22:00:00Z", "2023-03-29T22:00:00Z")
case("kathmandu", "+05:45, and +05:30 before 1986", "Asia/Kathmandu", "day", None,
     ("2026-11-17T18:15:00Z", "2026-11-17T18:15:00Z", "2026-11-18T18:15:00Z"),
     ("1985-12-31T18:30:00Z", "1985-12-31T18:30:00Z", "1986-01-01T18:15:00Z"),
     "2026-11-17T18:14:59Z", "1985-06-01T18:29:59Z")
case("kathmandu_year", "1986 starts in a gap of 15 minutes", "Asia/Kathmandu", "year", None,
     ("1985-12-31T18:30:00Z", "1985-12-31T18:30:00Z", "1986-12-31T18:15:00Z"), "1985-12-31T18:29:59Z")
case("apia_days", "2011-12-30 does not exist: the 29th is followed by the 31st", "Pacific/Apia", "day", None,
     ("2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"),
     ("2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"),
     "2011-12-29T09:59:59Z", "2012-01-01T12:00:00Z", "2021-04-03T14:30:00Z")
case("apia_month_30", "the anchor is on the day that does not exist: the month starts with the 31st", "Pacific/Apia",
     "month", "30",
     ("2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2012-01-29T10:00:00Z"),
     ("2011-12-30T09:59:59Z", "2011-11-30T10:00:00Z", "2011-12-30T10:00:00Z"), "2011-12-31T12:00:00Z")
case("apia_week_friday", "the Friday that does not exist", "Pacific/Apia", "week", "friday",
     ("2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2012-01-05T10:00:00Z"), "2011-12-30T09:59:59Z")
case("lord_howe_days", "half an hour of DST: days of 23:30 and 24:30", "Australia/Lord_Howe", "day", None,
     ("2026-04-04T14:00:00Z", "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z"),
     ("2026-10-03T13:30:00Z", "2026-10-03T13:30:00Z", "2026-10-04T13:00:00Z"),
     "2026-04-05T13:29:59Z", "2026-10-04T12:59:59Z")
case("lord_howe_in_the_fold", "01:45 comes twice on 2026-04-05", "Australia/Lord_Howe", "day", "01:45",
     ("2026-04-04T14:45:00Z", "2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"), "2026-04-04T15:15:00Z",
     "2026-04-04T14:44:59Z")
case("casablanca_days", "+01 but for Ramadan, when clocks are an hour behind: 2024-03-10 02:00Z to 2024-04-14 02:00Z",
     "Africa/Casablanca", "day", None,
     ("2024-03-10T12:00:00Z", "2024-03-09T23:00:00Z", "2024-03-11T00:00:00Z"),
     ("2024-04-14T12:00:00Z", "2024-04-14T00:00:00Z", "2024-04-14T23:00:00Z"),
     "2024-03-20T00:00:00Z", "2024-06-01T12:00:00Z", "2025-02-23T12:00:00Z", "2025-04-06T12:00:00Z")
case("casablanca_month", "April 2024 starts in Ramadan and ends after it", "Africa/Casablanca", "month", None,
     ("2024-04-01T00:00:00Z", "2024-04-01T00:00:00Z", "2024-04-30T23:00:00Z"), "2024-03-31T23:30:00Z")
case("dublin_days", "summer is the standard time by law; the offsets are those of London", "Europe/Dublin", "day", None,
     ("2026-03-29T12:00:00Z", "2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z"),
     ("2026-10-25T12:00:00Z", "2026-10-24T23:00:00Z", "2026-10-26T00:00:00Z"))
case("kwajalein_days", "1993-08-21 does not exist", "Pacific/Kwajalein", "day", None,
     ("1993-08-21T11:59:59Z", "1993-08-20T12:00:00Z", "1993-08-21T12:00:00Z"),
     ("1993-08-21T12:00:00Z", "1993-08-21T12:00:00Z", "1993-08-22T12:00:00Z"))
case("caracas_days", "half an hour back in 2007, half an hour forward in 2016", "America/Caracas", "day", None,
     ("2007-12-09T12:00:00Z", "2007-12-09T04:00:00Z", "2007-12-10T04:30:00Z"),
     ("2016-05-01T12:00:00Z", "2016-05-01T04:30:00Z", "2016-05-02T04:00:00Z"))
case("pyongyang_days", "half an hour forward at 23:30 in 2018: the day ends without its last half hour", "Asia/Pyongyang", "day", None,
     ("2018-05-04T14:59:59Z", "2018-05-03T15:30:00Z", "2018-05-04T15:00:00Z"),
     ("2018-05-04T15:00:00Z", "2018-05-04T15:00:00Z", "2018-05-05T15:00:00Z"), "2015-08-14T15:15:00Z")
case("st_johns_days", "until 2011 clocks changed at 00:01: the minute after midnight came twice", "America/St_Johns", "day",
     None,
     ("2010-11-07T02:30:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"),
     ("2010-11-07T02:31:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"),
     "2010-11-07T03:15:00Z", "2010-11-07T03:30:00Z", "2010-11-07T02:29:59Z", "2010-03-14T12:00:00Z")
case("troll_days", "two hours of DST", "Antarctica/Troll", "day", None,
     ("2026-03-29T12:00:00Z", "2026-03-29T00:00:00Z", "2026-03-29T22:00:00Z"), "2026-10-25T12:00:00Z")
case("monrovia_days", "-00:44:30 until 1972, then UTC", "Africa/Monrovia", "day", None,
     ("1971-06-01T00:44:30Z", "1971-06-01T00:44:30Z", "1971-06-02T00:44:30Z"),
     ("1972-01-07T00:44:30Z", "1972-01-07T00:44:30Z", "1972-01-08T00:00:00Z"), "1972-01-06T12:00:00Z")
case("kiritimati_month", "+14, the first to start a month", "Pacific/Kiritimati", "month", None,
     ("2026-10-31T10:00:00Z", "2026-10-31T10:00:00Z", "2026-11-30T10:00:00Z"), "1994-12-31T10:00:00Z")
case("new_york_month_31", "DST ends on 2027-11-07", "America/New_York", "month", "31", "2027-10-31T04:00:00Z",
     "2027-11-30T05:00:00Z", "2028-02-29T05:00:00Z", "2028-02-29T04:59:59Z")

if __name__ == "__main__":
    head = {"tzdata": version("tzdata"), "made_by": "make.py", "steps": sum(len(c["steps"]) for c in CASES)}
    lines = [f' "{key}": {json.dumps(value)}' for key, value in head.items()]
    cases = []
    for entry in CASES:
        steps = ",\n".join("    " + json.dumps(step) for step in entry.pop("steps"))
        fields = ",\n".join(f"   {json.dumps(key)}: {json.dumps(value)}" for key, value in entry.items())
        cases.append("  {\n" + fields + ',\n   "steps": [\n' + steps + "\n   ]\n  }")
    print("{\n" + ",\n".join(lines) + ',\n "cases": [\n' + ",\n".join(cases) + "\n ]\n}")
