//! Calendar periods of quotas: pure functions of an instant. The caller passes the time.
mod anchor;
mod boundary;
mod cache;
mod calendar;
mod carry;
mod civil;
mod error;
mod every;
mod nearest;
mod period;
mod weekday;
mod zone;

pub use anchor::Anchor;
pub use cache::{PeriodBounds, PeriodCache, SharedPeriodCache, bounds_at};
pub use calendar::Calendar;
pub use carry::UsageCarry;
pub use error::{CalendarError, CalendarErrorKind};
pub use every::Every;
pub use period::Period;
pub use weekday::Weekday;
pub use zone::TimeZone;
