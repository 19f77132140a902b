//! `queue`: how many requests wait for a slot, and for how long.

use tollgate_rules::problem::Problems;
use tollgate_rules::read::FieldValue;

use super::{MS, SECOND, set_number, set_span};
use crate::wait_queue::{QueueConfig, QueueDiscipline};

const FIELDS: &[&str] = &["max", "max_wait", "overload", "target", "interval"];
const DISCIPLINES: [(&str, QueueDiscipline); 3] =
    [("fifo", QueueDiscipline::Fifo), ("codel", QueueDiscipline::Codel), ("lifo", QueueDiscipline::Lifo)];
const PLACES_MAX: u32 = 100_000;

/// Reads `{ max: 100, max_wait: 500ms, overload: codel }`.
pub fn read_queue(value: FieldValue<'_>, problems: &mut Problems) -> QueueConfig {
    let fields = value.fields(FIELDS, "{ max: 100, max_wait: 500ms }", problems);
    let mut config = QueueConfig::default();
    let mut places = config.max as u32;
    set_number(&mut places, &fields, "max", 0..=PLACES_MAX, problems);
    config.max = places as usize;
    // Below 100 ms a request could be shed while one of a lower class was just admitted (P26).
    set_span(&mut config.max_wait, &fields, "max_wait", 100 * MS..=60 * SECOND, problems);
    set_span(&mut config.interval, &fields, "interval", 100 * MS..=60 * SECOND, problems);
    set_span(&mut config.target, &fields, "target", MS..=60 * SECOND, problems);
    if let Some(discipline) = fields.get("overload").and_then(|value| value.choice(&DISCIPLINES, problems)) {
        config.discipline = discipline;
    }
    config
}
