//! Values as people and programs read them. Text from files and arguments goes through [`visible`] on its way out.

mod change;
mod decision;
mod explained;
mod moment;
mod palette;
mod report;
mod rule;
mod span;
mod stored;
mod table;
mod text;

pub use change::{Tally, changes_text, field_changes};
pub use decision::{Shown, ruling_text};
pub use explained::{effective_text, explained_text};
pub use moment::moment;
pub use palette::Palette;
pub use report::{colour_report, problem_json};
pub use rule::{key_words, limit_words, match_words, member, mode_words, source_words};
pub use span::for_people;
pub use stored::stored_text;
pub use table::{Table, cell};
pub use text::{count, visible};
