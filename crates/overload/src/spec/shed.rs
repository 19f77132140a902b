//! `shed`: what is left for critical requests, and when saturated workers shed.

use tollgate_rules::problem::Problems;
use tollgate_rules::read::FieldValue;

use super::{MS, SECOND, above, set_percent, set_span};
use crate::utilisation::UtilisationConfig;

const FIELDS: &[&str] = &["reserved", "good", "bad", "wait", "ramp"];
const HOUR: u64 = 3_600 * SECOND;

/// The fleet usage shedder and the worker utilisation shedder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShedSpec {
    /// The share of the fleet's concurrency that only critical requests may use, in percent.
    pub reserved_percent: u32,
    /// When workers count as saturated.
    pub utilisation: UtilisationConfig,
}

impl Default for ShedSpec {
    fn default() -> ShedSpec {
        ShedSpec { reserved_percent: 20, utilisation: UtilisationConfig::default() }
    }
}

/// Reads `{ reserved: 20%, good: 70%, bad: 80%, wait: 28s, ramp: 2m }`.
pub fn read_shed(value: FieldValue<'_>, problems: &mut Problems) -> ShedSpec {
    let fields = value.fields(FIELDS, "{ reserved: 20%, good: 70%, bad: 80% }", problems);
    let mut spec = ShedSpec::default();
    set_percent(&mut spec.reserved_percent, &fields, "reserved", 1..=90, problems);
    let (mut good, mut bad) = (70, 80);
    set_percent(&mut good, &fields, "good", 1..=99, problems);
    set_percent(&mut bad, &fields, "bad", 1..=99, problems);
    if good > bad {
        above(&fields, "good", "bad", problems);
    }
    let utilisation = &mut spec.utilisation;
    (utilisation.good, utilisation.bad) = (f64::from(good) / 100.0, f64::from(bad) / 100.0);
    set_span(&mut utilisation.wait, &fields, "wait", 100 * MS..=HOUR, problems);
    set_span(&mut utilisation.ramp, &fields, "ramp", 100 * MS..=HOUR, problems);
    spec
}
