//! The plans of a client over time.

/// Plans with the instants from which they hold, in ascending order.
///
/// The text form is what a directory stores for each of a million clients: `pro`, or `free;1796083200000000000=pro`
/// with nanoseconds since 1970. It starts with `;` if no plan holds before the first instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanSchedule(String);

/// Separates the steps of a schedule.
const STEP: char = ';';

impl PlanSchedule {
    /// Largest number of steps.
    pub const STEPS_MAX: usize = 32;

    /// One plan without a date.
    pub fn always(plan: &str) -> PlanSchedule {
        PlanSchedule(plan.to_owned())
    }

    /// The schedule of these steps: instants in nanoseconds since 1970, 0 for a plan without a date, and plans.
    pub fn of<'a>(steps: impl IntoIterator<Item = (u64, &'a str)>) -> PlanSchedule {
        let mut text = String::new();
        for (from_ns, plan) in steps {
            match from_ns {
                0 => text.push_str(plan),
                from_ns => text.push_str(&format!("{STEP}{from_ns}={plan}")),
            }
        }
        PlanSchedule(text)
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The instants in nanoseconds since 1970, 0 for the first plan if it has no date, and the plans.
    pub fn steps(&self) -> impl Iterator<Item = (u64, &str)> {
        let (first, rest) = self.0.split_once(STEP).unwrap_or((&self.0, ""));
        let first = Some((0, first)).filter(|(_, plan)| !plan.is_empty());
        first.into_iter().chain(rest.split(STEP).filter_map(step))
    }

    /// True if some step has a date.
    pub fn is_dated(&self) -> bool {
        is_dated(&self.0)
    }
}

/// True if a text form has dates.
#[inline]
pub fn is_dated(text: &str) -> bool {
    text.contains(STEP)
}

/// The plan that holds at an instant, by the text form of a schedule. Never allocates.
pub fn plan_at(text: &str, wall_ns: u64) -> Option<&str> {
    let Some((first, rest)) = text.split_once(STEP) else { return Some(text) };
    let started = rest.split(STEP).filter_map(step).take_while(|(from_ns, _)| *from_ns <= wall_ns).last();
    started.map(|(_, plan)| plan).or(Some(first).filter(|first| !first.is_empty()))
}

fn step(text: &str) -> Option<(u64, &str)> {
    let (from_ns, plan) = text.split_once('=')?;
    Some((from_ns.parse().ok()?, plan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_step_that_started_holds() {
        let schedule = PlanSchedule::of([(0, "free"), (20, "pro"), (30, "team")]);
        assert_eq!(schedule.as_str(), "free;20=pro;30=team");
        assert_eq!(schedule.steps().collect::<Vec<_>>(), [(0, "free"), (20, "pro"), (30, "team")]);
        let plans = [0, 19, 20, 29, 30, u64::MAX].map(|wall| plan_at(schedule.as_str(), wall).unwrap());
        assert_eq!(plans, ["free", "free", "pro", "pro", "team", "team"]);
    }

    #[test]
    fn no_plan_holds_before_the_first_date() {
        let schedule = PlanSchedule::of([(20, "pro")]);
        assert_eq!([19, 20].map(|wall| plan_at(schedule.as_str(), wall)), [None, Some("pro")]);
        assert_eq!(schedule.steps().collect::<Vec<_>>(), [(20, "pro")]);
        assert!(schedule.is_dated() && !PlanSchedule::always("pro").is_dated());
        assert_eq!(PlanSchedule::always("pro").steps().collect::<Vec<_>>(), [(0, "pro")]);
    }
}
