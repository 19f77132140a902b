//! Reads `quota`: an amount per calendar period.

use tollgate_calendar::{Anchor, Calendar, CalendarError, Every, TimeZone};

use super::field::FieldValue;
use crate::check;
use crate::problem::{Problem, Problems};
use crate::spec::{LimitSpec, QuotaSpec};

/// Fields of a quota, in canonical order.
pub const QUOTA_FIELDS: &[&str] = &["amount", "every", "time_zone", "anchor", "rollover", "overdraft", "marks"];

/// Most marks of a quota.
const MARKS_MAX: usize = 16;

const EXAMPLE: &str = "quota: { amount: 2000000, every: month }";

/// Reads the map under `quota` as a limit; `None` after a problem.
pub(super) fn read_quota(value: FieldValue<'_>, problems: &mut Problems) -> Option<LimitSpec> {
    let before = problems.len();
    let fields = value.fields(QUOTA_FIELDS, EXAMPLE, problems);
    let amount = fields.required("amount", &format!("write for example `{EXAMPLE}`"), problems);
    let amount = amount.and_then(|value| value.integer(0..=check::REQUESTS_MAX, problems));
    let every = fields.required("every", "write `every: day`, `week`, `month`, `year` or `never`", problems);
    let every = every.and_then(|value| calendar_word(&value, Every::parse, problems));
    let zone = fields.get("time_zone").map(|value| calendar_word(&value, TimeZone::parse, problems));
    let zone = zone.unwrap_or(Some(TimeZone::UTC));
    let anchor = match (every, fields.get("anchor")) {
        (Some(every), Some(value)) => calendar_word(&value, |text| Anchor::parse(every, text), problems),
        (every, _) => every.map(Anchor::default_of),
    };
    let mut percent = |name| fields.get(name).and_then(|value| value.percent(1..=100, problems)).unwrap_or(0);
    let (rollover, overdraft) = (percent("rollover"), percent("overdraft"));
    if every == Some(Every::Never) {
        for name in ["time_zone", "rollover"] {
            if let Some(value) = fields.get(name) {
                let message = format!("{} does not belong to a quota that never starts anew", value.path);
                problems.push(value.problem("misplaced-field", message).help("remove it"));
            }
        }
    }
    let calendar = Calendar::new(anchor?, zone?);
    let marks = fields.get("marks").map_or_else(|| QuotaSpec::MARKS.to_vec(), |value| read_marks(&value, problems));
    let quota = QuotaSpec { calendar, rollover, overdraft, marks };
    (problems.len() == before && fields.known()).then(|| LimitSpec::quota(amount.unwrap_or(0), quota))
}

/// Percentages, in ascending order.
fn read_marks(value: &FieldValue<'_>, problems: &mut Problems) -> Vec<u32> {
    let items = value.one_or_more();
    if items.len() > MARKS_MAX {
        let message = format!("{} has {} marks", value.path, items.len());
        problems.push(value.problem("out-of-range", message).help(format!("name at most {MARKS_MAX}")));
    }
    let mut marks: Vec<u32> = items.iter().filter_map(|item| item.percent(1..=200, problems)).collect();
    marks.sort_unstable();
    marks.dedup();
    marks
}

/// One word that the calendar understands.
fn calendar_word<T>(
    value: &FieldValue<'_>,
    parse: impl FnOnce(&str) -> Result<T, CalendarError>,
    problems: &mut Problems,
) -> Option<T> {
    let text = value.text(problems)?;
    parse(text).map_err(|error| problems.push(calendar_problem(value, &error))).ok()
}

/// A word that the calendar refused.
pub(super) fn calendar_problem(value: &FieldValue<'_>, error: &CalendarError) -> Problem {
    value.problem(error.code(), format!("{}: {}", value.path, error.message())).help(error.help().to_owned())
}
