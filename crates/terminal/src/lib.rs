//! Text output. Text from files, arguments and servers is printed through [`visible`].

mod change;
mod decision;
mod duration;
mod explanation;
mod field_order;
mod figures;
mod palette;
mod ramp;
mod recent_decision;
mod report;
mod rule;
mod stored;
mod table;
mod text;
mod timestamp;
mod traffic;

pub use change::{ChangeCounts, changes_text, field_changes};
pub use decision::{DecisionView, ruling_text};
pub use duration::human_duration;
pub use explanation::{effective_text, explained_text};
pub use field_order::rank;
pub use figures::{grouped, short_time};
pub use palette::Palette;
pub use ramp::{proposal_yaml, ramp_json, ramp_text, step_words};
pub use recent_decision::{decision_text, decisions_text, refusal_line};
pub use report::{colour_report, problem_json};
pub use rule::{key_words, limit_words, match_words, member, mode_words, source_words};
pub use stored::stored_text;
pub use table::{TextTable, cell};
pub use text::{count, visible};
pub use timestamp::timestamp;
pub use traffic::overview_text;
